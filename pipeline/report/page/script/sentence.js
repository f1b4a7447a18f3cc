// One sentence: its texts, its n-best list, its tokens and its measures.

function makeSentence(place) {
  const { data } = state;
  const reference = data.reference[place];
  const flags = data.flags[place];
  const texts = make(
    "dl",
    { class: "texts" },
    makePair("Source", corpusText("dd", "", data.source[place])),
    makePair(
      "Reference",
      reference === null
        ? make("dd", { class: "absent" }, "none")
        : corpusText("dd", "", reference),
    ),
  );
  if (flags.length) texts.append(makePair("Flags", make("dd", {}, flags.join(", "))));
  const found = bestText(place) === null ? [] : [makeHypotheses(place), ...makeTokens(place)];
  return [texts, ...found, makeFolded("All measures of this sentence", () => makeMeasures(place))];
}

const makePair = (name, value) => make("div", {}, make("dt", {}, name), value);

function makeHypotheses(place) {
  const { hypothesis_offset: offset, hypothesis, score } = state.data;
  const rows = [];
  for (let at = offset[place]; at < offset[place + 1]; at += 1) {
    const rank = String(at - offset[place] + 1);
    rows.push([rank, corpusText("td", "words", hypothesis[at]), shown(score[at], 3)]);
  }
  const words = make("th", { scope: "col", class: "words" }, "Hypothesis");
  return makeTable("Hypotheses, best first", ["Rank", words, "Search score"], rows);
}

function makeMeasures(place) {
  const rows = Object.entries(state.data.measures).map(([name, all]) => {
    const own = number(all[place]);
    const values = all.map(number).filter((one) => !Number.isNaN(one));
    const share = (100 * values.filter((one) => one < own).length) / values.length;
    const rank = Number.isNaN(own) ? "n/a" : `${shown(share, 0)} %`;
    const head = make("th", { scope: "row" }, state.set.measure_labels[name]);
    return [head, digits(own), rank];
  });
  const caption = "Measures, and the share of the set that is surer";
  return makeTable(caption, ["Measure", "Value", "Surer"], rows);
}
