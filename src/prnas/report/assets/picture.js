// Drawings that prnas laid out, as SVG in the page's own colours.
import { el, svg } from "./dom.js";

export function drawPicture(data, label) {
  const [width, height] = data.size;
  const items = data.items.map((item) => {
    switch (item[0]) {
      case "box": {
        const [, x, y, w, h, rx, paint] = item;
        return svg("rect", { x, y, width: w, height: h, rx, class: paint });
      }
      case "text": {
        const [, x, y, textLength, size, text] = item;
        return svg("text", { x, y, "font-size": size, textLength, lengthAdjust: "spacingAndGlyphs" }, text);
      }
      case "curve": {
        const [, w, points, paint] = item;
        return svg("path", { d: curvePath(points), "stroke-width": w, class: `line ${paint}` });
      }
      default: {
        const [, points, paint] = item;
        return svg("polygon", { points: points.join(" "), class: `tip ${paint}` });
      }
    }
  });
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "picture" },
    items,
  );
  picture.style.setProperty("--natural", `${Math.round(width * 1.25)}px`);
  return picture;
}

function curvePath(points) {
  let path = `M${points[0]} ${points[1]}`;
  for (let i = 2; i + 5 < points.length; i += 6) path += `C${points.slice(i, i + 6).join(" ")}`;
  return path;
}

export function genotypeSection(genotype, title) {
  if (!genotype) return null;
  const panels = Object.entries(genotype.pictures).map(([role, picture]) =>
    el(
      "section",
      { class: "cell-panel drawn" },
      el("h3", null, `${role} cell`),
      el("div", { class: "scroll", tabindex: "0", role: "group" }, drawPicture(picture, `The ${role} cell`)),
    ),
  );
  return el("section", { class: "genotype-section" }, el("h2", null, title), el("div", { class: "cells" }, panels));
}
