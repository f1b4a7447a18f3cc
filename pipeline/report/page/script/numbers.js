// Numbers in the data and their format. Infinities are text, because JSON cannot represent them.

const number = (value) => (value === null || value === undefined ? NaN : Number(value));
const counted = (count) => count.toLocaleString("en");

function shown(value, decimals) {
  const parsed = number(value);
  if (Number.isNaN(parsed)) return "n/a";
  if (!Number.isFinite(parsed)) return parsed > 0 ? "∞" : "−∞";
  const text = Math.abs(parsed).toFixed(decimals);
  return parsed < 0 && Number(text) !== 0 ? `−${text}` : text;
}

function digits(value) {
  const parsed = number(value);
  if (!Number.isFinite(parsed)) return shown(parsed, 0);
  return String(Number(parsed.toPrecision(4))).replace("-", "−");
}

// The finite values in ascending order.
const sorted = (values) => Float64Array.from(values.map(number).filter(Number.isFinite)).sort();
const quantile = (rising, share) => rising[Math.floor((rising.length - 1) * share)] ?? 0;
