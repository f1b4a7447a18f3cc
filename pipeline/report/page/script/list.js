// The matching sentences, a page at a time.

const ROWS_A_PAGE = 50;

function drawList() {
  const count = state.matching.length;
  const pages = Math.max(1, Math.ceil(count / ROWS_A_PAGE));
  const first = state.page * ROWS_A_PAGE;
  const after = Math.min(count, first + ROWS_A_PAGE);
  const below = count ? `: ${counted(first + 1)} to ${counted(after)} are below.` : ".";
  byId("status").textContent =
    `${counted(count)} of ${counted(state.data.source.length)} sentences match${below}`;
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

function makeRow(place) {
  const { data, set } = state;
  const measure = data.measures[byId("measure").value][place];
  const button = make(
    "button",
    { type: "button", "aria-expanded": "false", "aria-controls": `sentence-${place}` },
    make("span", { class: "place" }, String(place)),
    make(
      "span",
      { class: "texts" },
      corpusText("span", "source", data.source[place] || "(empty source)"),
      corpusText("span", "hypothesis", bestText(place) ?? "(no hypothesis)"),
    ),
    makeNumber(digits(measure), measureLabel()),
    makeNumber(shown(data.error_percent[place], 1), set.error_label),
  );
  const detail = make("div", { id: `sentence-${place}`, class: "detail", hidden: "" });
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    detail.hidden = open;
    if (!open && !detail.hasChildNodes()) detail.append(...makeSentence(place));
  });
  return make("li", {}, button, detail);
}

// The label is seen where the heading of the column is not, and always heard.
function makeNumber(value, label) {
  return make(
    "span",
    { class: "number" },
    make("b", {}, value),
    make("span", { class: "label" }, ` ${label}`),
  );
}
