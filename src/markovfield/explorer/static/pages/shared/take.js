// What can be taken along: a drawing as SVG or PNG, a canvas as PNG, the code that asks the same.
import { download, h } from "../../dom.js";

const SHOWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight",
  "fill-opacity", "stroke-opacity", "visibility", "display"];
const DROPPED = ["class", "tabindex", "role", "aria-label", "style"];

// A drawing by itself, with its colours written into it; `box` is left, top, width, height.
export function standalone(drawing, box) {
  const [left, top, width, height] = box;
  const copy = drawing.cloneNode(true);
  const from = drawing.querySelectorAll("*"), to = copy.querySelectorAll("*");
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of SHOWN) to[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of DROPPED) to[i].removeAttribute(name);
  });
  for (const name of DROPPED) copy.removeAttribute(name);
  copy.setAttribute("viewBox", `${left} ${top} ${width} ${height}`);
  copy.setAttribute("width", Math.ceil(width));
  copy.setAttribute("height", Math.ceil(height));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const fill = getComputedStyle(document.body).backgroundColor;
  for (const [name, value] of Object.entries({ x: left, y: top, width, height, fill })) ground.setAttribute(name, value);
  copy.prepend(ground);
  return copy;
}

export const textOf = (drawing) => new XMLSerializer().serializeToString(drawing);

// SVG text as a PNG, twice as large where browsers allow it.
export async function pngOf(text) {
  const image = new Image();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const [width, height] = [image.naturalWidth, image.naturalHeight];
    const scale = Math.min(2, 8192 / Math.max(width, height));
    const canvas = h("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

// Without the endings: alarm.bif.gz is alarm.
export const stem = (subject) => subject.name.replace(/(?<=.)(\.[A-Za-z]\w*)+$/, "").replace(/[^\w.-]+/g, "_") || "model";

function boxOf(drawing) {
  const { x, y, width, height } = drawing.viewBox.baseVal;
  return [x, y, width, height];
}

function takers(context, name, makers) {
  return h("div", { class: "take" }, Object.entries(makers).map(([kind, make]) =>
    h("button", { type: "button", "aria-label": `Save ${name} as ${kind.toUpperCase()}`, "data-take": `${name}.${kind}`,
      onclick: async () => {
        try {
          const type = { svg: "image/svg+xml", png: "image/png", py: "text/x-python" }[kind];
          download(`${stem(context.subject)}-${name}.${kind}`, type, await make());
        } catch (error) { context.tell(error.message, "error"); }
      } }, kind.toUpperCase())));
}

// A drawing with a viewBox, which scrolls where it is wider than the page, with buttons that save it.
export function drawing(context, name, made) {
  const text = () => textOf(standalone(made, boxOf(made)));
  return h("figure", { class: "drawing" }, h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": name }, made),
    takers(context, name, { svg: text, png: () => pngOf(text()) }));
}

// Buttons that save a canvas as it is.
export const takeCanvas = (context, name, canvas) =>
  takers(context, name, { png: () => new Promise((done) => canvas.toBlob(done, "image/png")) });

// A fold with the code that asks the same; `ask` is the promise of its text.
export function codeFold(context, ask) {
  const place = h("pre", { class: "code", tabindex: "0", "aria-label": "Code" });
  const show = async () => {
    if (!fold.open) return;
    try { place.textContent = (await ask()).code; } catch (error) { place.textContent = error.message; }
  };
  const copy = h("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(place.textContent);
      context.tell("The code was copied.");
    } catch { context.tell("The browser does not let this page copy: select the text.", "error"); }
  } }, "Copy");
  const fold = h("details", { class: "code-fold", ontoggle: show }, h("summary", {}, "As code"), place,
    h("div", { class: "take" }, copy), takers(context, "code", { py: () => place.textContent }));
  return Object.assign(fold, { refresh: show });
}
