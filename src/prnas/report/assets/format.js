// Numbers as people read them. What is missing is a dash.
export const NONE = "–";
export const missing = (value) => value === null || value === undefined || Number.isNaN(value);

const formats = {
  percent: (value) => `${(100 * value).toFixed(1)} %`,
  exactPercent: (value) => `${(100 * value).toFixed(2)} %`,
  share: (value) => `${Math.round(100 * value)} %`,
  weight: (value) => (100 * value).toFixed(1),
  hundredths: (value) => value.toFixed(2),
  thousandths: (value) => value.toFixed(3),
  whole: (value) => Math.round(value).toLocaleString("en"),
  short: (value) => String(Number(value.toPrecision(3))),
  rate: (value) => (value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : formats.short(value)),
  memory: (value) => (value >= 0.9995e9 ? `${(value / 1e9).toFixed(2)} GB` : `${Math.round(value / 1e6)} MB`),
  // With as many digits as the number `beside` it.
  millions: (value, beside = value) => `${beside >= 1e8 ? formats.whole(value / 1e6) : (value / 1e6).toFixed(2)} M`,
  seconds: (value) => (value < 100 ? `${formats.short(value)} s` : duration(value)),
};

export const show = Object.fromEntries(
  Object.entries(formats).map(([name, format]) => [
    name,
    (value, ...rest) => (missing(value) ? NONE : format(value, ...rest)),
  ]),
);

export function duration(seconds) {
  if (missing(seconds)) return NONE;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  for (const [unit, smaller, size, small] of [
    ["d", "h", 86400, 3600],
    ["h", "m", 3600, 60],
    ["m", "s", 60, 1],
  ]) {
    if (whole >= size) return `${Math.floor(whole / size)} ${unit} ${Math.floor((whole % size) / small)} ${smaller}`;
  }
  return `${whole} s`;
}

// "97.32 % ± 0.41 %"; nothing is said of a spread that is none.
export function spread(value, format) {
  if (!value) return NONE;
  const around = value.sd === null || (value.sd === 0 && value.n > 1) ? "" : ` ± ${format(value.sd, value.mean)}`;
  return `${format(value.mean)}${around}`;
}

export function plural(number, word, words) {
  return `${number.toLocaleString("en")} ${number === 1 ? word : words || `${word}s`}`;
}
