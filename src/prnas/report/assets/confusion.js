// What the test images of each class were taken for.
import { el, name, plain, svg, table } from "./dom.js";
import { show } from "./format.js";

const NAME_FONT = '11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Roboto, sans-serif';

export function confusionSection(confusion, title) {
  if (!confusion) return null;
  const named = (index) => confusion.names[index] ?? `class ${index}`;
  const rows = confusion.worst.map(([index, taken, count, total]) => [
    name(named(index)),
    name(named(taken)),
    show.whole(count),
    show.percent(total ? count / total : null),
  ]);
  const worst = rows.length
    ? table(["Class", "taken for", "times", "of its images"], rows, "worst")
    : el("p", null, "No image was taken for another class.");
  return el(
    "section",
    { class: "confusion-section" },
    el("h2", null, title),
    el(
      "div",
      { class: "confusion-box" },
      confusion.counts ? confusionMatrix(confusion, named) : null,
      el("div", { class: "worst-box" }, el("h3", null, "Confused most"), worst),
    ),
  );
}

// How wide the longest of some short texts is, in pixels.
function widest(texts) {
  const pen = el("canvas").getContext("2d");
  pen.font = NAME_FONT;
  return Math.ceil(Math.max(0, ...texts.map((text) => pen.measureText(text).width)));
}

// Where the parts of a matrix lie: margins as its names need them, cells as the window allows.
function confusionLayout(size, texts) {
  const named = size <= 60;
  const longest = named ? widest(texts) : 0;
  const left = named ? longest + 10 : 2;
  const room = Math.min(900, document.documentElement.clientWidth - 36) - left;
  const side = size <= 12 ? Math.max(27, Math.min(36, Math.floor(room / size))) : size <= 30 ? 20 : 8;
  const upright = longest > side - 2; // too long to lie over its column
  const names = upright ? Math.ceil(longest * 0.87) + 14 : 18;
  const top = 20 + (named ? names : 0);
  const beyond = upright ? Math.ceil(longest / 2) : 0;
  const width = Math.max(left + size * side + beyond + 4, 150);
  return { named, left, top, side, upright, width, height: top + size * side + 2 };
}

// Rows are the true classes, columns what they were taken for; the darker, the larger the share of the row.
function confusionMatrix(confusion, named) {
  const { size, counts } = confusion;
  const short = (index) => {
    const text = plain(named(index));
    return text.length > 16 ? `${text.slice(0, 15)}…` : text;
  };
  const lay = confusionLayout(size, Object.keys(confusion.names).map(short));
  const { left, top, side, width, height } = lay;
  const cells = [];
  const texts = [svg("text", { x: 0, y: 12, class: "class-name axes" }, "true ↓ / taken for →")];
  counts.forEach((row, i) => {
    const total = row.reduce((sum, count) => sum + count, 0) || 1;
    row.forEach((count, j) => {
      if (!count) return;
      const box = { x: left + j * side + 0.5, y: top + i * side + 0.5, width: side - 1, height: side - 1 };
      const title = `${named(i)} taken for ${named(j)}: ${count} of ${total}`;
      const look = {
        rx: side > 12 ? 2 : 0,
        class: i === j ? "right" : "wrong",
        "fill-opacity": opacity(count / total, i === j),
      };
      cells.push(svg("rect", { ...box, ...look }, svg("title", null, title)));
      if (side < 20) return;
      const className = String(count).length * 6.5 > side ? "count small" : "count";
      texts.push(
        svg(
          "text",
          { x: left + (j + 0.5) * side, y: top + (i + 0.5) * side + 3.5, "text-anchor": "middle", class: className },
          count,
        ),
      );
    });
    if (lay.named) texts.push(rowName(short(i), i, lay), columnName(short(i), i, lay));
  });
  const back = { x: left, y: top, width: size * side, height: size * side, class: "confusion-back" };
  const label = `Confusion matrix of ${size} classes; rows are the true classes, columns what they were taken for`;
  const attributes = {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    class: "confusion",
    "aria-label": label,
  };
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "group" },
    svg("svg", attributes, svg("rect", back), cells, texts),
  );
}

// Off the diagonal small shares matter: the square root shows them.
function opacity(share, right) {
  return (right ? 0.15 + 0.85 * share : 0.12 + 0.88 * Math.sqrt(share)).toFixed(3);
}

function rowName(text, row, { left, top, side }) {
  const y = top + (row + 0.5) * side + 3.5;
  return svg("text", { x: left - 6, y, "text-anchor": "end", class: "class-name" }, text);
}

function columnName(text, column, { left, top, side, upright }) {
  const x = left + (column + 0.5) * side;
  const y = top - 6;
  const turned = { x: x + 3, y, transform: `rotate(-60 ${x + 3} ${y})` };
  return svg("text", { ...(upright ? turned : { x, y, "text-anchor": "middle" }), class: "class-name" }, text);
}
