// Scatter plot of error against the measure, with one dot per sentence.

const CLOUD = { height: 220, left: 44, bottom: 36, margin: 8 };
// If the few largest values would take more than a third of an axis, they are drawn beyond its end,
// so that the others are not squeezed together.
const USUAL_QUANTILE = 0.995;
const LARGEST_STRETCH = 1.5;
const BEYOND = { gap: 10, length: 8 };

function drawCloud(measure, error) {
  const cloud = byId("cloud");
  const both = (position) => Number.isFinite(measure[position]) && Number.isFinite(error[position]);
  const drawn = measure.map((_, position) => position).filter(both);
  if (drawn.length < 2) {
    const reason = `No scatter plot: ${whyNoCloud(measure, error)}.`;
    cloud.replaceChildren(make("figcaption", {}, reason));
    return;
  }
  const { height, left, bottom, margin } = CLOUD;
  const width = cloud.clientWidth;
  const base = height - bottom;
  const across = makeAxis(drawn.map((position) => measure[position]), left + margin, width - margin);
  const up = makeAxis(drawn.map((position) => error[position]), base - margin, margin);
  const matching = new Set(state.matching);
  const marks = (wanted) =>
    drawn
      .filter((position) => matching.has(position) === wanted)
      .map((position) => makeMark(across, up, measure[position], error[position]))
      .join("");
  const label = `${state.set.error_label} against ${measureLabel()}`;
  const picture = make(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    make("path", { class: "axis", d: `M${left} ${up.end}V${base}H${across.end}` }),
    make("path", { class: "other", d: marks(false) }),
    make("path", { class: "match", d: marks(true) }),
    make("text", { x: left, y: base + 15 }, digits(across.low)),
    make("text", { x: across.end, y: base + 15, class: "last" }, digits(across.high)),
    make("text", { x: (left + width) / 2, y: base + 30, class: "middle" }, measureLabel()),
    make("text", { x: left - 6, y: base, class: "last" }, digits(up.low)),
    make("text", { x: left - 6, y: up.end + 10, class: "last" }, digits(up.high)),
  );
  const sentences = [`${label}: one dot per sentence. Faint dots do not match the filters.`];
  for (const [axis, name] of [[across, measureLabel()], [up, state.set.error_label]]) {
    if (axis.beyond.length) sentences.push(beyondText(axis, name));
  }
  const absent = measure.length - drawn.length;
  if (absent) {
    sentences.push(`Not drawn, without a finite value of both: ${plural(absent)}.`);
  }
  cloud.replaceChildren(picture, make("figcaption", {}, sentences.join(" ")));
}

const plural = (count) => `${counted(count)} sentence${count === 1 ? "" : "s"}`;

function beyondText(axis, name) {
  const { beyond, high } = axis;
  const largest = digits(Math.max(...beyond));
  return `Short lines beyond the axis: ${plural(beyond.length)} with ${name} above ${digits(high)}, up to ${largest}.`;
}

// Without a hypothesis there is no error either, so that references are named only if none exists.
function whyNoCloud(measure, error) {
  if (state.set.teacher_forced) {
    return "this test set was scored by teacher forcing, which decodes no hypotheses that could have errors";
  }
  if (state.data.reference.every((reference) => reference === null)) {
    return "this test set has no references, without which there are no errors";
  }
  if (!error.some(Number.isFinite)) return "no sentence of this test set has an error";
  if (!measure.some(Number.isFinite)) return `${measureLabel()} has no value in this test set`;
  return "fewer than two sentences have both a measure and an error";
}

// A dot, or a short line beyond the end of an axis.
function makeMark(across, up, measure, error) {
  const { length } = BEYOND;
  const x = across.at(measure);
  const y = up.at(error);
  if (measure > across.high) return `M${x - length} ${y}h${length}`;
  if (error > up.high) return `M${x} ${y}v${length}`;
  return `M${x} ${y}h0`;
}

// `end` is where the axis ends, and `to` where larger values are drawn.
function makeAxis(values, from, to) {
  const rising = sorted(values);
  const low = rising[0];
  const largest = rising.at(-1);
  const usual = quantile(rising, USUAL_QUANTILE);
  const high = largest - low > LARGEST_STRETCH * (usual - low) ? usual : largest;
  const beyond = rising.filter((value) => value > high);
  const room = beyond.length ? (BEYOND.gap + BEYOND.length) * Math.sign(to - from) : 0;
  const share = (value) => (high > low ? (value - low) / (high - low) : 0.5);
  const place = (value) => (value > high ? to : from + share(value) * (to - room - from));
  return { low, high, beyond, end: to - room, at: (value) => Math.round(10 * place(value)) / 10 };
}
