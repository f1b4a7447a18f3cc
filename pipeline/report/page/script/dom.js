"use strict";
// Elements and text. Data from a corpus enters the page as text only.

const SVG_TAGS = ["svg", "path", "text", "line"];

const byId = (id) => document.getElementById(id);
const stored = (id) => JSON.parse(byId(id).textContent);

// Data that the page holds as JSON, compressed by gzip and encoded as base64.
async function unpacked(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function make(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Text of a corpus, with its own direction, isolated from the text around it.
function corpusText(tag, name, words) {
  return make(tag, { class: `corpus ${name}`, dir: "auto" }, words);
}

function setOptions(select, pairs) {
  select.replaceChildren(...pairs.map(([value, label]) => make("option", { value, dir: "auto" }, label)));
}

// Rows hold texts or finished cells. The caption stays in sight if the table scrolls.
function makeTable(caption, heads, rows) {
  const filled = (tag, attributes) => (cell) =>
    typeof cell === "string" ? make(tag, attributes, cell) : cell;
  const body = rows.map((row) => make("tr", {}, ...row.map(filled("td", {}))));
  const table = make(
    "table",
    { "aria-label": caption },
    make("thead", {}, make("tr", {}, ...heads.map(filled("th", { scope: "col" })))),
    make("tbody", {}, ...body),
  );
  const about = { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" };
  const box = make("div", about, table);
  wideTables.observe(box);
  const shown = make("p", { class: "caption", "aria-hidden": "true" }, caption);
  return make("div", {}, shown, box);
}

// The content is made when the element is first opened.
function makeFolded(title, content) {
  const folded = make("details", {}, make("summary", {}, title));
  folded.addEventListener("toggle", () => folded.children.length < 2 && folded.append(content()));
  return folded;
}
