// The details of a sentence: texts, n-best list, tokens and measures.

const MOST_UNFOLDED = 5;

function makeSentence(position) {
  const { data } = state;
  const reference = data.reference[position];
  const flags = data.flags[position];
  const given =
    reference === null
      ? make("dd", { class: "absent" }, "none")
      : corpusText("dd", "", reference);
  const pairs = state.set.is_speech
    ? [makePair("Transcript", given), makePair("Recording", makeRecording(position))]
    : [makePair("Source", corpusText("dd", "", data.source[position])), makePair("Reference", given)];
  const texts = make("dl", { class: "texts" }, ...pairs);
  if (flags.length) texts.append(makePair("Flags", make("dd", {}, flags.join(", "))));
  const decoded = bestText(position) === null ? [] : [...makeHypotheses(position), ...makeTokens(position)];
  return [texts, ...decoded, makeFolded("All measures of this sentence", () => makeMeasures(position))];
}

const makePair = (name, value) => make("div", {}, make("dt", {}, name), value);

// The best hypotheses, and the others of a wide beam folded.
function makeHypotheses(position) {
  const { hypothesis_offset: offset, hypothesis, score } = state.data;
  const count = offset[position + 1] - offset[position];
  const table = (first, after, caption) => {
    const rows = Array.from({ length: after - first }, (_, n) => {
      const at = offset[position] + first + n;
      return [String(first + n + 1), corpusText("td", "words", hypothesis[at]), shown(score[at], 3)];
    });
    const words = make("th", { scope: "col", class: "words" }, "Hypothesis");
    return makeTable(caption, ["Rank", words, "Search score"], rows);
  };
  const best = table(0, Math.min(count, MOST_UNFOLDED), "Hypotheses, best first");
  if (count <= MOST_UNFOLDED) return [best];
  const title = `${counted(count - MOST_UNFOLDED)} further hypotheses`;
  return [best, makeFolded(title, () => table(MOST_UNFOLDED, count, title))];
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
