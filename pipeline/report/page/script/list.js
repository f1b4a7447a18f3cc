// The matching sentences, in pages.

const ROWS_PER_PAGE = 50;

function drawList() {
  const count = state.matching.length;
  const pages = Math.max(1, Math.ceil(count / ROWS_PER_PAGE));
  const first = state.page * ROWS_PER_PAGE;
  const after = Math.min(count, first + ROWS_PER_PAGE);
  const below = count ? `, ${counted(first + 1)} to ${counted(after)} are shown.` : ".";
  byId("status").textContent =
    `${counted(count)} of ${counted(state.data.source.length)} sentences match${below}`;
  byId("text-head").textContent =
    `${state.set.is_speech ? "Transcript" : "Source"} and best hypothesis`;
  byId("measure-head").textContent = measureLabel();
  byId("error-head").textContent = state.set.error_label;
  byId("list").replaceChildren(...state.matching.slice(first, after).map(makeRow));
  byId("page").textContent = `Page ${counted(state.page + 1)} of ${counted(pages)}`;
  byId("previous").disabled = state.page === 0;
  byId("next").disabled = state.page + 1 >= pages;
}

function turnPage(by) {
  state.page += by;
  drawList();
  byId("status").scrollIntoView({ block: "start" });
}

function makeRow(position) {
  const { data, set } = state;
  const measure = data.measures[byId("measure").value][position];
  const title = "Link to this sentence";
  const place = make("a", { class: "position", href: addressOf(position), title }, String(position));
  const button = make(
    "button",
    { type: "button", "aria-expanded": "false", "aria-controls": `sentence-${position}` },
    make("span", { class: "texts" }, givenText(position), decodedText(position)),
    makeNumber(digits(measure), measureLabel()),
    makeNumber(shown(data.error_percent[position], 1), set.error_label),
  );
  const detail = make("div", { id: `sentence-${position}`, class: "detail", hidden: "" });
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    detail.hidden = open;
    if (!open && !detail.hasChildNodes()) detail.append(...makeSentence(position));
  });
  const side = make("div", { class: "side" }, place);
  if (soundOf(position)) side.append(makePlayButton(position));
  return make("li", {}, side, button, detail);
}

// The source of a translation, or the transcript of speech.
function givenText(position) {
  const { data, set } = state;
  const text = set.is_speech ? data.reference[position] : data.source[position];
  if (text) return corpusText("span", "given", text);
  const nothing = set.is_speech ? "(no transcript)" : "(empty source)";
  return make("span", { class: "given absent" }, nothing);
}

function decodedText(position) {
  const text = bestText(position);
  if (text) return corpusText("span", "hypothesis", text);
  const nothing = text === null ? "(no hypothesis)" : "(empty hypothesis)";
  return make("span", { class: "hypothesis" }, nothing);
}

// The label is visible if the column has no heading, and always available to screen readers.
function makeNumber(value, label) {
  return make(
    "span",
    { class: "number" },
    make("b", {}, value),
    make("span", { class: "label" }, ` ${label}`),
  );
}
