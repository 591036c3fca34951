// Plots of a study: every search as a dot, means with their intervals. Dots of a row are one path, so that
// thousands stay smooth; the nearest one is found when it is pointed at.
import { el, name, plain, put, replace, svg } from "./dom.js";
import { duration, missing, show } from "./format.js";
import { ticks } from "./scale.js";

export const KINDS = { search: "blue", random: "orange", cell: "green" };
const NEAR = 18; // pixels
const percent = (value) => (missing(value) ? "–" : `${Number((100 * value).toPrecision(3))} %`);

// The least and the greatest of some numbers, with some room; whatever is missing does not count.
export function spanOf(values, room) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (missing(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return null;
  const around = (high - low || Math.abs(high) || 1) * room;
  return [low >= 0 && low - around < 0 ? 0 : low - around, high + around];
}

// What both plots have: a size that follows the page, a tooltip, and a dot that can be chosen.
export class PointPlot {
  constructor(title, note, className) {
    this.plot = svg("svg", { class: "plot", role: "img" });
    this.tip = el("div", { class: "tooltip", hidden: true });
    this.box = el("div", { class: "plot-box" }, this.plot, this.tip);
    const caption = el(
      "figcaption",
      null,
      el("span", { class: "chart-title" }, title),
      note ? el("span", { class: "chart-note" }, note) : null,
    );
    this.node = el("figure", { class: `chart ${className}` }, caption, this.box);
    this.title = title;
    this.points = [];
    this.width = 0;
    this.chosen = null;
    this.observer = new ResizeObserver(() => this.resize() && this.draw());
    this.observer.observe(this.box);
    this.plot.addEventListener("pointermove", (event) => this.point(event));
    this.plot.addEventListener("pointerdown", (event) => this.point(event));
    this.plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.choose(null);
    });
    this.plot.addEventListener("click", () => {
      if (this.chosen?.href) location.href = this.chosen.href;
    });
  }

  resize() {
    const width = Math.max(240, Math.floor(this.box.clientWidth));
    if (width === this.width) return false;
    this.width = width;
    return true;
  }

  drawNow() {
    this.resize();
    this.draw();
  }

  start(height) {
    this.height = height;
    put(this.plot, { width: this.width, height, viewBox: `0 0 ${this.width} ${height}` });
    this.mark = svg("circle", { class: "dot-mark", r: 6, visibility: "hidden" });
    this.points = [];
    this.choose(null);
  }

  point(event) {
    const box = this.plot.getBoundingClientRect();
    const scale = this.width / (box.width || this.width);
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    let best = null;
    let least = NEAR * NEAR;
    for (const point of this.points) {
      const distance = (point.x - x) ** 2 + (point.y - y) ** 2;
      if (distance < least) [best, least] = [point, distance];
    }
    // A finger reads first, and opens what it has read.
    if (event.type === "pointerdown" && event.pointerType === "touch" && best !== this.chosen) event.preventDefault();
    if (best !== this.chosen) this.choose(best);
  }

  choose(point) {
    this.chosen = point;
    this.tip.hidden = !point;
    this.plot.classList.toggle("linked", Boolean(point?.href));
    if (!this.mark) return;
    put(this.mark, { visibility: point ? "visible" : "hidden", cx: point?.x ?? 0, cy: point?.y ?? 0 });
    if (!point) return;
    replace(
      this.tip,
      el("div", { class: "tip-head" }, name(point.row.name), ` · ${point.what}`),
      point.values.map(([label, value]) =>
        el("div", { class: "tip-row" }, el("span", { class: "tip-name" }, label), el("b", null, value)),
      ),
    );
    const left = point.x > this.width / 2 ? point.x - this.tip.offsetWidth - 12 : point.x + 12;
    this.tip.style.left = `${Math.max(0, Math.min(left, this.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${Math.max(0, point.y - this.tip.offsetHeight - 8)}px`;
  }
}

export const dotPath = (points) => points.map(({ x, y }) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("");
const meanPath = (x, y, size) => `M${x - size} ${y}l${size} ${-size}l${size} ${size}l${-size} ${size}z`;

function unitValues(data, unit) {
  const values = [[data.metric, show.exactPercent(unit.error)]];
  if (!missing(unit.parameters)) values.push(["Parameters", show.millions(unit.parameters)]);
  if (!missing(unit.seconds)) values.push(["Search", duration(unit.seconds)]);
  return values;
}

// A strip for each row: its searches, their mean and its interval. All strips share one axis.
export class DotPlot extends PointPlot {
  constructor(linkOf) {
    super("Every search", "dots: searches · diamond: mean · bar: 95 % interval of the mean", "dot-plot");
    this.linkOf = linkOf;
  }

  update(data, order) {
    this.data = data;
    this.order = order;
    const means = data.rows.map((row) => `${row.name} ${show.exactPercent(row.mean)}`);
    this.plot.setAttribute("aria-label", plain(`${data.metric} of every search: ${means.join(", ")}`).slice(0, 2000));
    this.draw();
  }

  draw() {
    if (!this.width || !this.data) return;
    const { data, order, width } = this;
    const narrow = width < 560;
    const strip = order.length > 30 ? 30 : 44;
    const pitch = narrow ? strip + 18 : strip;
    const top = 6;
    const left = narrow ? 12 : Math.min(220, 24 + 7 * Math.max(...data.rows.map((row) => row.name.length)));
    const right = width - 16;
    this.start(top + pitch * order.length + 26);
    const bottom = this.height - 22;
    const span = spanOf(
      data.rows.flatMap((row) => [row.low, row.high, row.mean, ...row.units.map((unit) => unit.error)]),
      0.06,
    );
    if (!span) {
      replace(this.plot, svg("text", { class: "tick", x: left, y: 24 }, "no result yet"));
      return;
    }
    const [low, high] = span;
    const toX = (value) => left + ((value - low) / (high - low)) * (right - left);
    const grid = ticks(low, high, Math.max(2, Math.floor((right - left) / 90))).map((value) => {
      const x = toX(value).toFixed(1);
      return svg(
        "g",
        null,
        svg("path", { class: "grid-line", d: `M${x} ${top}V${bottom}` }),
        svg("text", { class: "tick", x, y: this.height - 6, "text-anchor": "middle" }, percent(value)),
      );
    });
    const strips = order.map((number, index) => {
      const row = data.rows[number];
      const middle = top + index * pitch + (narrow ? 18 : 0) + strip / 2;
      const points = row.units
        .filter((unit) => !missing(unit.error))
        .map((unit, i) => ({
          x: toX(unit.error),
          y: middle + (((i * 5) % 7) - 3) * (strip / 16), // apart, in a way that repeats
          row,
          what: `seed ${unit.seed}`,
          values: unitValues(data, unit),
          href: this.linkOf(row, unit),
        }));
      this.points.push(...points);
      const label = narrow
        ? { x: left, y: middle - strip / 2 - 4, "text-anchor": "start" }
        : { x: left - 10, y: middle + 4, "text-anchor": "end" };
      const most = narrow ? 40 : 30;
      const text = row.name.length > most ? `${row.name.slice(0, most - 1)}…` : row.name;
      return svg(
        "g",
        { class: "strip", "--c": `var(--${KINDS[row.kind]})`, "data-strip": row.name },
        index ? svg("path", { class: "grid-line", d: `M${narrow ? 0 : 8} ${top + index * pitch}H${right}` }) : null,
        svg("text", { class: "strip-name", ...label }, text),
        missing(row.low)
          ? null
          : svg("path", { class: "interval", d: `M${toX(row.low).toFixed(1)} ${middle}H${toX(row.high).toFixed(1)}` }),
        svg("path", { class: "dots", d: dotPath(points) || "M0 0", "data-dots": points.length }),
        missing(row.mean) ? null : svg("path", { class: "mean-mark", d: meanPath(toX(row.mean), middle, 6) }),
      );
    });
    const axis = svg("path", { class: "axis", d: `M${left} ${bottom}H${right}` });
    replace(this.plot, grid, axis, strips, this.mark);
  }
}

// Error against what it costs: every search as a pale dot, each row's mean as a diamond with its name.
export class Scatter extends PointPlot {
  constructor(title, key, rowKey, format, linkOf) {
    super(title, null, "scatter");
    Object.assign(this, { key, rowKey, format, linkOf });
  }

  update(data) {
    this.data = data;
    const rows = data.rows.filter((row) => !missing(row[this.rowKey]) && !missing(row.mean));
    this.node.hidden = !rows.length;
    const texts = rows.map((row) => `${row.name} ${this.format(row[this.rowKey])}, ${show.exactPercent(row.mean)}`);
    this.plot.setAttribute("aria-label", plain(`${data.metric}: ${texts.join("; ")}`).slice(0, 2000));
    this.draw();
  }

  draw() {
    if (!this.width || !this.data) return;
    const { data, key, rowKey, width } = this;
    const rows = data.rows.filter((row) => !missing(row[rowKey]) && !missing(row.mean));
    this.start(250);
    if (!rows.length) return;
    const [left, right, top, bottom] = [52, width - 14, 12, this.height - 26];
    const costs = rows
      .flatMap((row) => [row[rowKey], ...row.units.map((unit) => unit[key])])
      .filter((x) => !missing(x));
    // Over more than a power and a half of ten, a logarithmic axis.
    const log = Math.min(...costs) > 0 && Math.max(...costs) / Math.min(...costs) > 30;
    const cost = (value) => (log ? Math.log10(value) : value);
    const [from, to] = spanOf(costs.map(cost), 0.08);
    const [low, high] = spanOf(
      rows.flatMap((row) => [row.low, row.high, row.mean, ...row.units.map((unit) => unit.error)]),
      0.06,
    );
    const toX = (value) => left + ((cost(value) - from) / (to - from)) * (right - left);
    const toY = (value) => top + ((high - value) / (high - low)) * (bottom - top);
    const steps = log ? ticks(from, to, 4, true).map((power) => 10 ** power) : ticks(from, to, Math.floor(width / 110));
    const grid = [
      ticks(low, high, 5).map((value) =>
        svg(
          "g",
          null,
          svg("path", { class: "grid-line", d: `M${left} ${toY(value).toFixed(1)}H${right}` }),
          svg("text", { class: "tick", x: left - 6, y: toY(value) + 3.5, "text-anchor": "end" }, percent(value)),
        ),
      ),
      steps.map((value) =>
        svg("text", { class: "tick", x: toX(value), y: this.height - 8, "text-anchor": "middle" }, this.format(value)),
      ),
      svg("path", { class: "axis", d: `M${left} ${bottom}H${right}` }),
    ];
    const marks = rows.map((row) => {
      const points = row.units
        .filter((unit) => !missing(unit.error) && !missing(unit[key]))
        .map((unit) => ({
          x: toX(unit[key]),
          y: toY(unit.error),
          row,
          what: `seed ${unit.seed}`,
          values: [
            [data.metric, show.exactPercent(unit.error)],
            [this.title.replace(/^.* against /, ""), this.format(unit[key])],
          ],
          href: this.linkOf(row, unit),
        }));
      this.points.push(...points);
      const x = toX(row[rowKey]);
      const y = toY(row.mean);
      const interval = missing(row.low)
        ? ""
        : `M${x.toFixed(1)} ${toY(row.low).toFixed(1)}V${toY(row.high).toFixed(1)}`;
      return svg(
        "g",
        { "--c": `var(--${KINDS[row.kind]})` },
        svg("path", { class: "dots pale", d: dotPath(points) || "M0 0" }),
        interval ? svg("path", { class: "interval thin", d: interval }) : null,
        svg("path", { class: "mean-mark", d: meanPath(x, y, 5) }),
      );
    });
    replace(this.plot, grid, marks, this.names(rows, toX, toY, right), this.mark);
  }

  // A name beside each mean, where no other is in its way.
  names(rows, toX, toY, right) {
    const placed = [];
    return rows.map((row) => {
      const text = row.name.length > 22 ? `${row.name.slice(0, 21)}…` : row.name;
      const wide = 6.5 * text.length;
      const x = toX(row[this.rowKey]);
      const y = toY(row.mean) + 4;
      const free = (spot) => !placed.some((other) => overlap(spot, other));
      const spots = [0, -13, 13].flatMap((down) => [
        { from: x + 10, to: x + 10 + wide, y: y + down },
        { from: x - 10 - wide, to: x - 10, y: y + down },
      ]);
      const spot = spots.find((candidate) => candidate.from > 0 && candidate.to < right && free(candidate));
      if (!spot) return null;
      placed.push(spot);
      const side = spot.from > x ? { x: spot.from, "text-anchor": "start" } : { x: spot.to, "text-anchor": "end" };
      return svg("text", { class: "point-name", y: spot.y, ...side }, text);
    });
  }
}

function overlap(first, second) {
  return Math.abs(first.y - second.y) < 12 && first.from < second.to && second.from < first.to;
}
