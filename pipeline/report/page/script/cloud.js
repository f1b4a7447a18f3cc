// Error against the measure: a dot a sentence of the set, dark where it matches the choice.

const CLOUD = { height: 210, left: 44, bottom: 36, margin: 8 };
// The few largest values lie on the edge instead of pressing all others together.
const LARGEST_SHOWN_QUANTILE = 0.995;

function drawCloud(measure, error) {
  const cloud = byId("cloud");
  const both = (place) => Number.isFinite(measure[place]) && Number.isFinite(error[place]);
  const drawn = measure.map((_, place) => place).filter(both);
  cloud.hidden = drawn.length < 2;
  if (cloud.hidden) return;
  const { height, left, bottom, margin } = CLOUD;
  const width = cloud.clientWidth;
  const base = height - bottom;
  const across = makeAxis(drawn.map((place) => measure[place]), left + margin, width - margin);
  const up = makeAxis(drawn.map((place) => error[place]), base - margin, margin);
  const dots = (places) =>
    places.map((place) => `M${across.at(measure[place])} ${up.at(error[place])}h0`).join("");
  const matching = new Set(state.matching);
  const label = `${state.set.error_label} against ${measureLabel()}`;
  const picture = make(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    make("path", { class: "axis", d: `M${left} 0V${base}H${width}` }),
    make("path", { class: "other", d: dots(drawn.filter((place) => !matching.has(place))) }),
    make("path", { class: "match", d: dots(drawn.filter((place) => matching.has(place))) }),
    make("text", { x: left, y: base + 15 }, digits(across.low)),
    make("text", { x: width, y: base + 15, class: "last" }, digits(across.high)),
    make("text", { x: (left + width) / 2, y: base + 30, class: "middle" }, measureLabel()),
    make("text", { x: left - 6, y: base, class: "last" }, digits(up.low)),
    make("text", { x: left - 6, y: 12, class: "last" }, digits(up.high)),
  );
  const caption = `${label}: a dot a sentence, dark where it matches the choice.`;
  cloud.replaceChildren(picture, make("figcaption", {}, caption));
}

function makeAxis(values, from, to) {
  const rising = sorted(values);
  const low = rising[0];
  const high = quantile(rising, LARGEST_SHOWN_QUANTILE);
  const share = (value) => (high > low ? Math.min(1, (value - low) / (high - low)) : 0.5);
  return { low, high, at: (value) => (from + share(value) * (to - from)).toFixed(1) };
}
