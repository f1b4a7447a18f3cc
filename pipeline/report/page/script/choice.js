// The selected test set, and the sentences that match the filters, in order.

// Numbers that can colour the tokens: name in the data, name in words, short name.
const TOKEN_NUMBERS = [
  ["total", "total uncertainty H", "H"],
  ["mutual_information", "knowledge uncertainty I", "I"],
  ["reverse_information", "knowledge uncertainty M", "M"],
  ["spread", "spread of the members' ln P", "spread"],
];
// The colour saturates at this quantile, so that an outlier does not make all others pale.
const FULL_COLOUR_QUANTILE = 0.98;

const sets = stored("sets");
const state = {
  set: null,
  data: null,
  full: {}, // name of a token number -> the value at which its colour saturates
  marksWords: false, // whether subwords mark the start of a word
  matching: [],
  page: 0,
  colour: "total",
};

async function selectSet(index) {
  const set = sets[index];
  const data = await unpacked(set.element);
  if (Number(byId("set").value) !== index) return; // another set was selected meanwhile
  data.spread = spreads(data);
  for (const [name] of TOKEN_NUMBERS) {
    state.full[name] = quantile(sorted(data[name]), FULL_COLOUR_QUANTILE);
  }
  state.set = set;
  state.data = data;
  state.marksWords = data.subwords.some((subword) => subword.startsWith(WORD_START));
  const measure = byId("measure").value;
  setOptions(byId("measure"), Object.entries(set.measure_labels));
  if (measure in set.measure_labels) byId("measure").value = measure;
  byId("error-legend").textContent = `${set.error_label} between`;
  byId("decode").textContent = decodeLine();
  applyFilters();
}

function decodeLine() {
  const { set, data } = state;
  const { beam, temperature, length_norm: normalised } = data.setting;
  const all = data.source.length === set.n_sentence;
  const part = all ? "" : `the first ${counted(data.source.length)} of `;
  const count = Object.keys(data.sound ?? {}).length;
  const sound = count ? ` The page holds the sound of ${count} of the most uncertain.` : "";
  return (
    `${set.decoded_by} (${data.members.join(", ")}); ` +
    `measures at B = ${beam}, T = ${temperature}, ` +
    `${normalised ? "with" : "without"} length normalisation; ` +
    `${part}${counted(set.n_sentence)} sentences.${sound}`
  );
}

// The standard deviation over members of ln P of each token.
function spreads(data) {
  const count = data.members.length;
  const values = data.member_logprob.map(number);
  return data.subword.map((_, token) => {
    const own = values.slice(token * count, (token + 1) * count);
    const mean = own.reduce((sum, value) => sum + value, 0) / count;
    const spread = Math.sqrt(own.reduce((sum, value) => sum + (value - mean) ** 2, 0) / count);
    return Number.isNaN(spread) ? Infinity : spread;
  });
}

const measureLabel = () => state.set.measure_labels[byId("measure").value];
const measureValues = () => state.data.measures[byId("measure").value].map(number);
const errorValues = () => state.data.error_percent.map(number);

function bestText(position) {
  const { hypothesis_offset: offset, hypothesis } = state.data;
  return offset[position] < offset[position + 1] ? hypothesis[offset[position]] : null;
}

function applyFilters() {
  if (state.data === null) return; // not unpacked yet
  const measure = measureValues();
  const error = errorValues();
  const inMeasure = bounds("measure");
  const inError = bounds("error");
  const hasText = textFilter(byId("search").value.trim().toLowerCase());
  state.matching = state.data.source
    .map((_, position) => position)
    .filter((at) => inMeasure(measure[at]) && inError(error[at]) && hasText(at));
  const [by, direction] = byId("order").value.split("-");
  if (by !== "position") sortBy(by === "error" ? error : measure, direction === "down" ? -1 : 1);
  state.page = 0;
  drawCloud(measure, error);
  drawList();
}

// A sentence without a value is excluded only if a bound is set.
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
  return (at) => has(source[at]) || has(reference[at]) || has(bestText(at));
}

// Sentences without a value come last in both directions.
function sortBy(values, sign) {
  const absent = (position) => Number(Number.isNaN(values[position]));
  state.matching.sort((a, b) => {
    if (absent(a) || absent(b)) return absent(a) - absent(b) || a - b;
    if (values[a] === values[b]) return a - b;
    return values[a] < values[b] ? -sign : sign;
  });
}
