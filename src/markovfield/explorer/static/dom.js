// Elements without HTML text: whatever a model calls its variables stays text.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null) continue;
    // Of these, "false" says something else than nothing.
    if (name.startsWith("aria-")) { element.setAttribute(name, value); continue; }
    if (value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

// h("button", {class: "small", onclick: f}, "text", element, ...)
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export function replace(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

// A probability for people: three digits, never 0 or 1 unless it is.
export function percent(p) {
  if (p === null || p === undefined) return "?";
  if (p === 0 || p >= 1 - 1e-12) return p ? "100%" : "0%";
  const shown = 100 * p;
  // As a plain number down to 0.0001%.
  if (shown < 0.1) return p < 1e-12 ? "~0%" : `${shown < 1e-4 ? shown.toExponential(0) : Number(shown.toPrecision(1))}%`;
  if (shown > 99.9) return ">99.9%";
  return `${shown.toFixed(1)}%`;
}

// The same from its logarithm, however small: 10 to a power where percents say nothing any more.
export function percentOfLog(log) {
  if (log === null || log === undefined) return "?";
  if (log > -7) return percent(Math.exp(log));
  const tens = log / Math.LN10, whole = Math.floor(tens);
  return `${(10 ** (tens - whole)).toFixed(1)}e${whole}`;
}

export function number(x, digits = 4) {
  if (x === null || x === undefined) return "?";
  // What rounding leaves of a zero.
  return Math.abs(x) < 1e-14 ? "0" : Number(x.toPrecision(digits)).toString();
}

export function download(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// A page's own style sheet, below static/; loaded once, and out of force while another page is open.
export function styles(path) {
  const known = document.querySelector(`link[data-path="${path}"]`);
  if (known) {
    if (known.sheet) known.sheet.disabled = false;
    return Promise.resolve();
  }
  return new Promise((done, fail) => {
    const link = h("link", { rel: "stylesheet", href: `static/${path}`, "data-path": path, onload: done,
      onerror: () => fail(new Error(`the style sheet ${path} is missing`)) });
    document.head.append(link);
  });
}

export function stylesOff() {
  for (const { sheet } of document.querySelectorAll("link[data-path]")) if (sheet) sheet.disabled = true;
}
