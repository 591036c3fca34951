// The training of a final network: curves, test error, and what is taken for what.
const errorLine = (line) => ({ ...line, ys: line.ys.map((value) => missing(value) ? null : 1 - value) });

function trainingCharts(group, run) {
  const scores = (what) => [
    epochLine(run, `training_${what}`, "training", "blue"),
    epochLine(run, `test_${what}`, "test", "red")];
  return {
    learning: [
      group.chart({ id: "error", title: "Error", format: show.exactPercent, tick: show.share, height: 210, low: 0 }, scores("accuracy").map(errorLine)),
      group.chart({ id: "loss", title: "Loss", format: show.fixed(3), tick: show.short, height: 210 }, scores("loss")),
      group.chart({ id: "lr", title: "Learning rate", format: show.rate, low: 0, height: 210 }, [epochLine(run, "lr", "learning rate", "blue")])],
    machine: [
      group.chart({ id: "drop", title: "Drop-path", format: show.percent, tick: show.short, low: 0 }, [epochLine(run, "drop_path", "probability", "blue")]),
      ...speedCharts(group, run)],
  };
}

function confusionSection(confusion, title) {
  if (!confusion) return null;
  const named = (place) => confusion.names[place] ?? `class ${place}`;
  const worst = confusion.worst.length ? table(["Class", "taken for", "times", "of its images"],
    confusion.worst.map(([place, taken, count, total]) => [name(named(place)), name(named(taken)), show.whole(count), show.percent(total ? count / total : null)]), "worst") : el("p", null, "No image was taken for another class.");
  return el("section", { class: "confusion-section" }, el("h2", null, title || "Confusion matrix"),
    el("div", { class: "confusion-box" }, confusion.counts ? confusionMatrix(confusion, named) : null,
      el("div", { class: "worst-box" }, el("h3", null, "Confused most"), worst)));
}

const NAME_FONT = '11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Roboto, sans-serif';

// How wide the longest of some short texts is, in pixels.
function widest(texts) {
  const pen = el("canvas").getContext("2d");
  pen.font = NAME_FONT;
  return Math.ceil(Math.max(0, ...texts.map((text) => pen.measureText(text).width)));
}

// Where the parts of a matrix lie: margins as its names need them, cells as the window allows.
function confusionLayout(size, texts) {
  const named = size <= 60, longest = named ? widest(texts) : 0;
  const left = named ? longest + 10 : 2, head = 20;
  const room = Math.min(900, document.documentElement.clientWidth - 36) - left;
  const side = size <= 12 ? Math.max(27, Math.min(36, Math.floor(room / size))) : size <= 30 ? 20 : 8;
  const upright = longest > side - 2;  // too long to lie over its column
  const top = head + (!named ? 0 : upright ? Math.ceil(longest * 0.87) + 14 : 18);
  const beyond = upright ? Math.ceil(longest / 2) : 0;
  return { named, left, top, head, side, upright, width: Math.max(left + size * side + beyond + 4, 150), height: top + size * side + 2 };
}

// Rows are the true classes, columns what they were taken for; the darker, the larger the share of the row.
function confusionMatrix(confusion, named) {
  const { size, counts } = confusion;
  const short = (place) => { const text = plain(named(place)); return text.length > 16 ? `${text.slice(0, 15)}…` : text; };
  const lay = confusionLayout(size, Object.keys(confusion.names).map(short));
  const { left, top, side } = lay;
  const cells = [], texts = [svg("text", { x: 0, y: 12, class: "class-name axes" }, "true ↓ / taken for →")];
  counts.forEach((row, i) => {
    const total = row.reduce((sum, one) => sum + one, 0) || 1;
    row.forEach((count, j) => {
      if (!count) return;
      const share = count / total, x = left + j * side, y = top + i * side;
      // Off the diagonal small shares matter: the square root shows them.
      cells.push(svg("rect", { x: x + 0.5, y: y + 0.5, width: side - 1, height: side - 1, rx: side > 12 ? 2 : 0, class: i === j ? "right" : "wrong", "fill-opacity": (i === j ? 0.15 + 0.85 * share : 0.12 + 0.88 * Math.sqrt(share)).toFixed(3) },
        svg("title", null, `${named(i)} taken for ${named(j)}: ${count} of ${total}`)));
      if (side >= 20) texts.push(svg("text", { x: x + side / 2, y: y + side / 2 + 3.5, "text-anchor": "middle", class: String(count).length * 6.5 > side ? "count small" : "count" }, count));
    });
    if (lay.named) {
      texts.push(svg("text", { x: left - 6, y: top + i * side + side / 2 + 3.5, "text-anchor": "end", class: "class-name" }, short(i)));
      const x = left + i * side + side / 2;
      texts.push(lay.upright ? svg("text", { x: x + 3, y: top - 6, class: "class-name", transform: `rotate(-60 ${x + 3} ${top - 6})` }, short(i))
        : svg("text", { x, y: top - 6, class: "class-name", "text-anchor": "middle" }, short(i)));
    }
  });
  return el("div", { class: "scroll", tabindex: "0", role: "group" }, svg("svg", { width: lay.width, height: lay.height, viewBox: `0 0 ${lay.width} ${lay.height}`, role: "img", class: "confusion",
    "aria-label": `Confusion matrix of ${size} classes; rows are the true classes, columns what they were taken for` },
    svg("rect", { x: left, y: top, width: size * side, height: size * side, class: "confusion-back" }), cells, texts));
}

function genotypeSection(genotype, title) {
  if (!genotype) return null;
  return el("section", { class: "genotype-section" }, el("h2", null, title),
    el("div", { class: "cells" }, ROLES.map((role) => el("section", { class: "cell-panel drawn" }, el("h3", null, `${role} cell`),
      el("div", { class: "scroll", tabindex: "0", role: "group" }, drawPicture(genotype.pictures[role], `The ${role} cell`))))));
}
