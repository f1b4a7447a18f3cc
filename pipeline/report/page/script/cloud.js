// Scatter plot of error against the measure, with one dot per sentence.

const CLOUD = { height: 210, left: 44, bottom: 36, margin: 8 };
// The few largest values are drawn at the edge, so that the others are not squeezed together.
const LARGEST_SHOWN_QUANTILE = 0.995;

function drawCloud(measure, error) {
  const cloud = byId("cloud");
  const both = (position) => Number.isFinite(measure[position]) && Number.isFinite(error[position]);
  const drawn = measure.map((_, position) => position).filter(both);
  cloud.hidden = drawn.length < 2;
  if (cloud.hidden) return;
  const { height, left, bottom, margin } = CLOUD;
  const width = cloud.clientWidth;
  const base = height - bottom;
  const across = makeAxis(drawn.map((position) => measure[position]), left + margin, width - margin);
  const up = makeAxis(drawn.map((position) => error[position]), base - margin, margin);
  const dots = (positions) =>
    positions.map((position) => `M${across.at(measure[position])} ${up.at(error[position])}h0`).join("");
  const matching = new Set(state.matching);
  const label = `${state.set.error_label} against ${measureLabel()}`;
  const picture = make(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    make("path", { class: "axis", d: `M${left} 0V${base}H${width}` }),
    make("path", { class: "other", d: dots(drawn.filter((position) => !matching.has(position))) }),
    make("path", { class: "match", d: dots(drawn.filter((position) => matching.has(position))) }),
    make("text", { x: left, y: base + 15 }, digits(across.low)),
    make("text", { x: width, y: base + 15, class: "last" }, digits(across.high)),
    make("text", { x: (left + width) / 2, y: base + 30, class: "middle" }, measureLabel()),
    make("text", { x: left - 6, y: base, class: "last" }, digits(up.low)),
    make("text", { x: left - 6, y: 12, class: "last" }, digits(up.high)),
  );
  const caption = `${label}: one dot per sentence. Dark dots match the filters.`;
  cloud.replaceChildren(picture, make("figcaption", {}, caption));
}

function makeAxis(values, from, to) {
  const rising = sorted(values);
  const low = rising[0];
  const high = quantile(rising, LARGEST_SHOWN_QUANTILE);
  const share = (value) => (high > low ? Math.min(1, (value - low) / (high - low)) : 0.5);
  return { low, high, at: (value) => (from + share(value) * (to - from)).toFixed(1) };
}
