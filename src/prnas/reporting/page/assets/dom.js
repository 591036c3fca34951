// Building the page. Text only ever becomes text nodes: nothing here parses markup.
const SVG_SPACE = "http://www.w3.org/2000/svg";
// Control characters and those that turn the direction of text are shown, not obeyed.
const INVISIBLE = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function plain(value) {
  return String(value).replace(
    INVISIBLE, (one) => "\\u" + one.charCodeAt(0).toString(16).padStart(4, "0"));
}

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
  return node;
}

function put(node, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : plain(value));
  }
  return node;
}

function el(tag, attributes, ...children) {
  return fill(put(document.createElement(tag), attributes), children);
}

function svg(tag, attributes, ...children) {
  return fill(put(document.createElementNS(SVG_SPACE, tag), attributes), children);
}

function replace(node, ...children) {
  node.replaceChildren();
  return fill(node, children);
}

// A name from a file: its own direction, and no power over the text around it.
function name(text, attributes) {
  return el("bdi", attributes, text);
}

function table(headings, rows, className) {
  return el("div", { class: "scroll", tabindex: "0", role: "group" },
    el("table", { class: className },
      el("thead", null, el("tr", null, headings.map((one) => el("th", { scope: "col" }, one)))),
      el("tbody", null, rows.map((row) => el("tr", null,
        row.map((cell, place) => place ? el("td", null, cell) : el("th", { scope: "row" }, cell)))))));
}
