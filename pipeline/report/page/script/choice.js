// The chosen set, and which of its sentences match, in which order.

// What colours a token: name in the data, name in words, short name.
const TOKEN_NUMBERS = [
  ["total", "total uncertainty H", "H"],
  ["mutual_information", "knowledge uncertainty I", "I"],
  ["reverse_information", "knowledge uncertainty M", "M"],
  ["spread", "spread of the members' ln P", "spread"],
];
// Colours are full at this share of a set's tokens, so that one outlier does not pale the rest.
const FULL_COLOUR_QUANTILE = 0.98;

const sets = stored("sets");
const state = {
  set: null,
  data: null,
  full: {}, // token number -> its value of full colour
  marksWords: false, // whether units say where a word starts; those of whole words do not
  matching: [],
  page: 0,
  colour: "total",
};

async function chooseSet(place) {
  const set = sets[place];
  const data = await unpacked(set.element);
  if (Number(byId("set").value) !== place) return; // another one was chosen meanwhile
  data.spread = spreads(data);
  for (const [name] of TOKEN_NUMBERS) {
    state.full[name] = quantile(sorted(data[name]), FULL_COLOUR_QUANTILE);
  }
  state.set = set;
  state.data = data;
  state.marksWords = data.units.some((unit) => unit.startsWith(WORD_START));
  const chosen = byId("measure").value;
  setOptions(byId("measure"), Object.entries(set.measure_labels));
  if (chosen in set.measure_labels) byId("measure").value = chosen;
  byId("error-legend").textContent = `${set.error_label} between`;
  byId("decode").textContent = decodeLine();
  choose();
}

function decodeLine() {
  const { set, data } = state;
  const { beam, temperature, length_norm: normalised } = data.setting;
  const all = data.source.length === set.n_sentence;
  const part = all ? "" : `the first ${counted(data.source.length)} of `;
  return (
    `${set.decoded_by} (${data.members.join(", ")}); ` +
    `measures at B = ${beam}, T = ${temperature}, ` +
    `${normalised ? "with" : "without"} length normalisation; ` +
    `${part}${counted(set.n_sentence)} sentences.`
  );
}

// The standard deviation over members of ln P of each token.
function spreads(data) {
  const count = data.members.length;
  const values = data.member_logprob.map(number);
  return data.unit.map((_, token) => {
    const own = values.slice(token * count, (token + 1) * count);
    const mean = own.reduce((sum, one) => sum + one, 0) / count;
    const spread = Math.sqrt(own.reduce((sum, one) => sum + (one - mean) ** 2, 0) / count);
    return Number.isNaN(spread) ? Infinity : spread;
  });
}

const measureLabel = () => state.set.measure_labels[byId("measure").value];
const measureValues = () => state.data.measures[byId("measure").value].map(number);
const errorValues = () => state.data.error_percent.map(number);

function bestText(place) {
  const { hypothesis_offset: offset, hypothesis } = state.data;
  return offset[place] < offset[place + 1] ? hypothesis[offset[place]] : null;
}

function choose() {
  if (state.data === null) return; // still being unpacked
  const measure = measureValues();
  const error = errorValues();
  const inMeasure = bounds("measure");
  const inError = bounds("error");
  const hasText = textFilter(byId("search").value.trim().toLowerCase());
  state.matching = state.data.source
    .map((_, place) => place)
    .filter((place) => inMeasure(measure[place]) && inError(error[place]) && hasText(place));
  const [by, way] = byId("order").value.split("-");
  if (by !== "place") sortBy(by === "error" ? error : measure, way === "down" ? -1 : 1);
  state.page = 0;
  drawCloud(measure, error);
  drawList();
}

// A sentence without a value is listed until a bound asks for one.
function bounds(name) {
  const low = byId(`${name}-low`).value;
  const high = byId(`${name}-high`).value;
  if (low === "" && high === "") return () => true;
  return (value) =>
    !Number.isNaN(value) &&
    (low === "" || Number(low) <= value) &&
    (high === "" || value <= Number(high));
}

function textFilter(wanted) {
  if (!wanted) return () => true;
  const has = (text) => text !== null && text.toLowerCase().includes(wanted);
  const { source, reference } = state.data;
  return (place) => has(source[place]) || has(reference[place]) || has(bestText(place));
}

// Sentences without a value come last, whichever way.
function sortBy(values, sign) {
  const absent = (place) => Number(Number.isNaN(values[place]));
  state.matching.sort((a, b) => {
    if (absent(a) || absent(b)) return absent(a) - absent(b) || a - b;
    if (values[a] === values[b]) return a - b;
    return values[a] < values[b] ? -sign : sign;
  });
}
