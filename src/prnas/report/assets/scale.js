// Scales, ticks, and as many points of a line as there are pixels for.
import { missing } from "./format.js";

function niceStep(span, count, whole) {
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 2.5, 5, 10].map((step) => step * power);
  return steps.find((step) => step >= rough * (1 - 1e-9) && (!whole || Number.isInteger(step))) || 1;
}

// Round numbers from `low` to `high`, about `count` of them; `whole`: nothing between whole numbers.
export function ticks(low, high, count, whole) {
  const step = niceStep(high - low, count, whole);
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) {
    values.push(Number((i * step).toPrecision(12)));
  }
  return values;
}

// Each value of such a line holds until the next.
const isStep = (line) => line.until !== undefined;

// The first index in sorted `xs` whose value is not below `x`.
function firstFrom(xs, x) {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

// What a line says at an epoch's end: the nearest point, or the step that the epoch was in;
// nothing of an epoch that has not been.
export function valueAt(line, epoch) {
  const { xs, ys } = line;
  if (!xs.length) return null;
  if (isStep(line)) {
    if (epoch > line.until) return null;
    const index = firstFrom(xs, epoch - 0.499) - 1;
    return index < 0 ? ys[0] : ys[Math.min(index, ys.length - 1)];
  }
  const index = firstFrom(xs, epoch - 0.001);
  return index < xs.length && Math.abs(xs[index] - epoch) < 0.5 ? ys[index] : null;
}

export function lastValue(line) {
  for (let i = line.ys.length - 1; i >= 0; i -= 1) if (!missing(line.ys[i])) return line.ys[i];
  return null;
}

// The path of a line between `from` and `to`, in pixels. Of many points in one column of
// pixels the first, the lowest, the highest and the last are kept: no peak is lost.
export function linePath(line, from, to, toX, toY) {
  const { xs, ys } = line;
  const start = Math.max(0, firstFrom(xs, from) - 1);
  let path = "";
  let open = false;
  let column = null;
  let held = [];
  let dots = "";
  const emit = (x, y) => {
    const point = `${x.toFixed(1)} ${y.toFixed(1)}`;
    path += (open ? "L" : "M") + point;
    open = true;
  };
  const flush = () => {
    if (!held.length) return;
    let low = 0;
    let high = 0;
    held.forEach(([, y], i) => {
      if (y < held[low][1]) low = i;
      if (y > held[high][1]) high = i;
    });
    for (const i of [...new Set([0, Math.min(low, high), Math.max(low, high), held.length - 1])]) emit(...held[i]);
    held = [];
  };
  let alone = true;
  let before = null;
  for (let i = start; i < xs.length; i += 1) {
    const gap = missing(ys[i]);
    if (gap) {
      flush();
      if (isStep(line) && before !== null) emit(toX(xs[i]), before);
      open = false;
      column = null;
      before = null;
      continue;
    }
    const x = toX(xs[i]);
    const y = toY(ys[i]);
    alone = before === null && (i + 1 >= xs.length || missing(ys[i + 1]));
    if (isStep(line) && before !== null) {
      flush();
      emit(x, before);
      column = null;
    }
    if (alone && !isStep(line)) {
      dots += `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
    }
    if (Math.floor(x) !== column) {
      flush();
      column = Math.floor(x);
    }
    held.push([x, y]);
    before = y;
    if (xs[i] > to) break;
  }
  flush();
  if (isStep(line) && before !== null && xs[xs.length - 1] < line.until) emit(toX(line.until), before);
  return { path, dots };
}

// The least and the greatest value that is shown between two epochs.
export function range(lines, from, to) {
  let low = Infinity;
  let high = -Infinity;
  for (const line of lines) {
    const start = isStep(line) ? Math.max(0, firstFrom(line.xs, from) - 1) : firstFrom(line.xs, from);
    for (let i = start; i < line.xs.length && line.xs[i] <= to; i += 1) {
      const value = line.ys[i];
      if (missing(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low > high ? null : [low, high];
}
