// The tokens of the best hypothesis, coloured by a number. Pointing at a token shows its numbers.

const END = "</s>";
const WORD_START = "▁";

function makeTokens(position) {
  const id = `colour-${position}`;
  const select = make("select", { id, class: "colour" });
  setOptions(select, TOKEN_NUMBERS);
  select.value = state.colour;
  select.addEventListener("change", () => recolour(select.value));
  const line = make("p", {
    class: "heat",
    role: "group",
    "aria-label": "Tokens of the best hypothesis",
  });
  const readout = make("div", { class: "readout" });
  const tokens = tokensOf(position).map((at) => makeToken(at, readout));
  for (const token of tokens) {
    if (startsWord(Number(token.dataset.at))) line.append(" ");
    line.append(token);
  }
  moveByArrows(line, tokens);
  tokens.forEach(tint);
  readToken(tokens[0], readout);
  return [
    make(
      "div",
      { class: "colours" },
      make("label", { for: id }, "Colour tokens by"),
      select,
      make("span", { class: "scale" }, scaleText()),
    ),
    line,
    make("p", { class: "hint" }, "Point at a token or use the arrow keys to see its numbers."),
    readout,
    makeFolded("All numbers per token", () => makeTokenTable(position)),
  ];
}

function tokensOf(position) {
  const { token_offset: offset } = state.data;
  const count = offset[position + 1] - offset[position];
  return Array.from({ length: count }, (_, n) => offset[position] + n);
}

const subwordOf = (at) => state.data.subwords[state.data.subword[at]];

const startsWord = (at) => !state.marksWords || subwordOf(at).startsWith(WORD_START);

function subwordText(at) {
  const subword = subwordOf(at);
  return subword === END ? "end" : subword.replaceAll(WORD_START, " ").trim() || "␣";
}

const numbersText = (at) =>
  TOKEN_NUMBERS.map(([name, , short]) => `${short} ${shown(state.data[name][at], 3)}`).join(" · ");

const scaleText = () => `0 to ${shown(state.full[state.colour], 2)} nats`;

function makeToken(at, readout) {
  const token = corpusText("button", subwordOf(at) === END ? "token end" : "token", subwordText(at));
  token.type = "button";
  token.dataset.at = at;
  token.setAttribute("aria-label", `${subwordText(at)}: ${numbersText(at)} nats`);
  for (const event of ["focus", "pointerenter"]) {
    token.addEventListener(event, () => readToken(token, readout));
  }
  return token;
}

// The line is one tab stop; the arrow keys move within it.
function moveByArrows(line, tokens) {
  const focusable = (chosen) => {
    for (const token of tokens) token.tabIndex = token === chosen ? 0 : -1;
  };
  focusable(tokens[0]);
  line.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    const next = tokens[tokens.indexOf(document.activeElement) + step];
    if (!step || !next) return;
    focusable(next);
    next.focus();
    event.preventDefault();
  });
}

function recolour(name) {
  state.colour = name;
  for (const select of document.querySelectorAll("select.colour")) select.value = name;
  for (const scale of document.querySelectorAll(".scale")) scale.textContent = scaleText();
  document.querySelectorAll(".heat .token").forEach(tint);
}

function tint(token) {
  const full = state.full[state.colour];
  const value = number(state.data[state.colour][Number(token.dataset.at)]);
  const heat = full > 0 ? Math.min(1, Math.max(0, value / full)) : 0;
  token.style.setProperty("--heat", heat.toFixed(3));
  token.closest(".heat").dataset.colour = state.colour;
}

function readToken(token, readout) {
  const at = Number(token.dataset.at);
  for (const old of token.closest(".heat").querySelectorAll(".read")) old.classList.remove("read");
  token.classList.add("read");
  readout.replaceChildren(
    make("p", {}, corpusText("strong", "", subwordText(at)), ` ${numbersText(at)} nats`),
    make("dl", { class: "members" }, ...state.data.members.map((_, m) => makeMember(at, m))),
  );
}

function memberLogprob(at, m) {
  const { members, member_logprob: logprob } = state.data;
  return number(logprob[at * members.length + m]);
}

function makeMember(at, m) {
  const logprob = memberLogprob(at, m);
  const bar = make("span", { class: "bar" });
  bar.style.setProperty("--share", Math.exp(logprob).toFixed(4));
  const percent = `${shown(100 * Math.exp(logprob), 1)} %`;
  const numbers = [bar, percent, make("span", { class: "small" }, `ln P ${shown(logprob, 2)}`)];
  return makePair(state.data.members[m], make("dd", {}, ...numbers));
}

function makeTokenTable(position) {
  const { members } = state.data;
  const rows = tokensOf(position).map((at) => {
    const head = corpusText("th", "", subwordText(at));
    head.scope = "row";
    const numbers = TOKEN_NUMBERS.map(([name]) => shown(state.data[name][at], 3));
    return [head, ...numbers, ...members.map((_, m) => shown(memberLogprob(at, m), 2))];
  });
  const numberHeads = TOKEN_NUMBERS.map(([, , short]) => short);
  const heads = ["Token", ...numberHeads, ...members.map((member) => `ln P, ${member}`)];
  return makeTable("Nats; spread is the standard deviation of the members' ln P", heads, rows);
}
