// Scales, ticks, and as many points of a line as there are pixels for.
function niceStep(span, count) {
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const share = rough / power;
  return (share <= 1 ? 1 : share <= 2 ? 2 : share <= 2.5 ? 2.5 : share <= 5 ? 5 : 10) * power;
}

function ticks(low, high, count, whole) {
  let step = niceStep(high - low, count);
  if (whole) step = Math.max(1, Math.ceil(step));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

// The first place in sorted `xs` that is not below `x`.
function firstFrom(xs, x) {
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1; else high = middle;
  }
  return low;
}

// What a series says at an epoch's end: the nearest point, or the step that the epoch was in;
// nothing of an epoch that has not been.
function valueAt(series, epoch) {
  const { xs, ys } = series;
  if (!xs.length) return null;
  if (series.step) {
    if (epoch > series.until) return null;
    const place = firstFrom(xs, epoch - 0.499) - 1;
    return place < 0 ? ys[0] : ys[Math.min(place, ys.length - 1)];
  }
  const place = firstFrom(xs, epoch - 0.001);
  return place < xs.length && Math.abs(xs[place] - epoch) < 0.5 ? ys[place] : null;
}

function lastValue(series) {
  for (let i = series.ys.length - 1; i >= 0; i -= 1) if (!missing(series.ys[i])) return series.ys[i];
  return null;
}

// The path of a series between `from` and `to`, in pixels. Of many points in one column of
// pixels the first, the lowest, the highest and the last are kept: no peak is lost.
function linePath(series, from, to, toX, toY) {
  const { xs, ys } = series;
  const start = Math.max(0, firstFrom(xs, from) - 1);
  let path = "", open = false, column = null, held = [], dots = "";
  const emit = (x, y) => {
    const point = `${x.toFixed(1)} ${y.toFixed(1)}`;
    path += (open ? "L" : "M") + point;
    open = true;
  };
  const flush = () => {
    if (!held.length) return;
    let low = 0, high = 0;
    held.forEach(([, y], i) => { if (y < held[low][1]) low = i; if (y > held[high][1]) high = i; });
    for (const i of [...new Set([0, Math.min(low, high), Math.max(low, high), held.length - 1])]) emit(...held[i]);
    held = [];
  };
  let alone = true, before = null;
  for (let i = start; i < xs.length; i += 1) {
    const gap = missing(ys[i]);
    if (gap) {
      flush();
      if (series.step && before !== null) emit(toX(xs[i]), before);
      open = false; column = null; before = null;
      continue;
    }
    const x = toX(xs[i]), y = toY(ys[i]);
    alone = before === null && (i + 1 >= xs.length || missing(ys[i + 1]));
    if (series.step && before !== null) { flush(); emit(x, before); column = null; }
    if (alone && !series.step) { dots += `M${x.toFixed(1)} ${y.toFixed(1)}h0`; }
    if (Math.floor(x) !== column) { flush(); column = Math.floor(x); }
    held.push([x, y]);
    before = y;
    if (xs[i] > to) break;
  }
  flush();
  if (series.step && before !== null && xs[xs.length - 1] < series.until) emit(toX(series.until), before);
  return { path, dots };
}

// The least and the greatest value that is shown between two epochs.
function range(series, from, to) {
  let low = Infinity, high = -Infinity;
  for (const one of series) {
    const start = one.step ? Math.max(0, firstFrom(one.xs, from) - 1) : firstFrom(one.xs, from);
    for (let i = start; i < one.xs.length && one.xs[i] <= to; i += 1) {
      const value = one.ys[i];
      if (missing(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low > high ? null : [low, high];
}
