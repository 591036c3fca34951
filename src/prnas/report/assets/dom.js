// Building the page. Text only ever becomes text nodes: nothing here parses markup.
const SVG_SPACE = "http://www.w3.org/2000/svg";
// Control characters and those that turn the direction of text are shown, not obeyed.
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is its purpose
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function plain(value) {
  return String(value).replace(INVISIBLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
  return node;
}

export function put(node, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : plain(value));
  }
  return node;
}

export function el(tag, attributes, ...children) {
  return fill(put(document.createElement(tag), attributes), children);
}

export function svg(tag, attributes, ...children) {
  return fill(put(document.createElementNS(SVG_SPACE, tag), attributes), children);
}

export function replace(node, ...children) {
  node.replaceChildren();
  return fill(node, children);
}

// Make `node` hold `children`, touching nothing that is there already: focus, selection and scroll stay.
export function patch(node, ...children) {
  patchChildren(node, fill(document.createDocumentFragment(), children));
}

function patchChildren(node, fresh) {
  const olds = [...node.childNodes];
  const news = [...fresh.childNodes];
  news.forEach((child, i) => {
    if (i < olds.length) patchNode(olds[i], child);
    else node.append(child);
  });
  for (const child of olds.slice(news.length)) child.remove();
}

function patchNode(old, fresh) {
  const command = old.dataset?.command;
  if (old.isEqualNode(fresh) || (command !== undefined && fresh.dataset?.command === command)) return;
  // A button's action was set when it was made, so a new button replaces it.
  if (old.nodeName !== fresh.nodeName || old.nodeName === "BUTTON") {
    const focused = old.contains(document.activeElement);
    old.replaceWith(fresh);
    if (focused && fresh.focus) fresh.focus({ preventScroll: true });
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    old.data = fresh.data;
    return;
  }
  for (const { name: key } of [...old.attributes]) if (!fresh.hasAttribute(key)) old.removeAttribute(key);
  for (const { name: key, value } of fresh.attributes) {
    if (key === "style") old.style.cssText = fresh.style.cssText;
    else if (old.getAttribute(key) !== value) old.setAttribute(key, value);
  }
  patchChildren(old, fresh);
}

// A name from a file: its own direction, and no power over the text around it.
export function name(text, attributes) {
  return el("bdi", attributes, text);
}

export function table(headings, rows, className) {
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "group" },
    el(
      "table",
      { class: className },
      el(
        "thead",
        null,
        el(
          "tr",
          null,
          headings.map((heading) => el("th", { scope: "col" }, heading)),
        ),
      ),
      el(
        "tbody",
        null,
        rows.map((row) =>
          el(
            "tr",
            null,
            row.map((cell, column) => (column ? el("td", null, cell) : el("th", { scope: "row" }, cell))),
          ),
        ),
      ),
    ),
  );
}
