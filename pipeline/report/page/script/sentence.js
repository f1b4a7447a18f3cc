// The details of a sentence: texts, n-best list, tokens and measures.

function makeSentence(position) {
  const { data } = state;
  const reference = data.reference[position];
  const flags = data.flags[position];
  const texts = make(
    "dl",
    { class: "texts" },
    makePair("Source", corpusText("dd", "", data.source[position])),
    makePair(
      "Reference",
      reference === null
        ? make("dd", { class: "absent" }, "none")
        : corpusText("dd", "", reference),
    ),
  );
  if (flags.length) texts.append(makePair("Flags", make("dd", {}, flags.join(", "))));
  const decoded = bestText(position) === null ? [] : [makeHypotheses(position), ...makeTokens(position)];
  return [texts, ...decoded, makeFolded("All measures of this sentence", () => makeMeasures(position))];
}

const makePair = (name, value) => make("div", {}, make("dt", {}, name), value);

function makeHypotheses(position) {
  const { hypothesis_offset: offset, hypothesis, score } = state.data;
  const rows = [];
  for (let at = offset[position]; at < offset[position + 1]; at += 1) {
    const rank = String(at - offset[position] + 1);
    rows.push([rank, corpusText("td", "words", hypothesis[at]), shown(score[at], 3)]);
  }
  const words = make("th", { scope: "col", class: "words" }, "Hypothesis");
  return makeTable("Hypotheses, best first", ["Rank", words, "Search score"], rows);
}

function makeMeasures(position) {
  const rows = Object.entries(state.data.measures).map(([name, all]) => {
    const own = number(all[position]);
    const values = all.map(number).filter((value) => !Number.isNaN(value));
    const share = (100 * values.filter((value) => value < own).length) / values.length;
    const rank = Number.isNaN(own) ? "n/a" : `${shown(share, 0)} %`;
    const head = make("th", { scope: "row" }, state.set.measure_labels[name]);
    return [head, digits(own), rank];
  });
  const caption = "Measures, and the share of the test set that is less uncertain";
  return makeTable(caption, ["Measure", "Value", "Less uncertain"], rows);
}
