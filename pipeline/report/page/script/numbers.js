// Numbers of the data, and how they are shown. JSON has no infinities: they come as text.

const number = (value) => (value === null || value === undefined ? NaN : Number(value));
const counted = (count) => count.toLocaleString("en");

function shown(value, decimals) {
  const one = number(value);
  if (Number.isNaN(one)) return "n/a";
  if (!Number.isFinite(one)) return one > 0 ? "∞" : "−∞";
  const text = Math.abs(one).toFixed(decimals);
  return one < 0 && Number(text) !== 0 ? `−${text}` : text;
}

function digits(value) {
  const one = number(value);
  if (!Number.isFinite(one)) return shown(one, 0);
  return String(Number(one.toPrecision(4))).replace("-", "−");
}

// The finite values in rising order.
const sorted = (values) => Float64Array.from(values.map(number).filter(Number.isFinite)).sort();
const quantile = (rising, share) => rising[Math.floor((rising.length - 1) * share)] ?? 0;
