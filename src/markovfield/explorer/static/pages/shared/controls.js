// What pages share: labelled fields, sliders, panels, and their style sheet.
import { h, number, percent, styles } from "../../dom.js";

let numbers = 0;

export const useStyle = () => styles("pages/shared/pages.css");

// A label and what it names, one beside the other.
export function field(text, input, extra) {
  input.id ||= `field-${++numbers}`;
  return h("div", { class: "field" }, h("label", { for: input.id }, text), input, extra);
}

// options: [value, text] pairs.
export function choice(text, options, value, onchange) {
  const select = h("select", { onchange: () => onchange(select.value) },
    options.map(([name, shown]) => h("option", { value: name }, shown)));
  select.value = value;
  return Object.assign(field(text, select), { input: select });
}

// A slider that shows its number; oninput is told of every move.
export function slider(text, { min, max, step, value, name, digits = 2 }, oninput) {
  const shown = h("output", {});
  const input = h("input", { type: "range", min, max, step, name, oninput: () => told() });
  input.value = value;
  const show = () => { shown.textContent = Number(input.value).toFixed(digits); };
  const told = () => { show(); oninput(Number(input.value)); };
  show();
  const made = field(text, input, shown);
  return Object.assign(made, { input, set: (x) => { input.value = x; show(); } });
}

export const button = (text, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, text);

export const panel = (title, ...children) =>
  h("section", { class: "panel", "aria-label": title }, h("h2", {}, title), children);

// What is needed now and then: open where there is room.
export const more = (text, ...children) =>
  h("details", { open: innerWidth > 800 }, h("summary", {}, text), children);

// Calls f at most once every so many milliseconds, the last time with the newest arguments.
export function settled(f, milliseconds = 250) {
  let timer = null;
  const call = (...told) => { clearTimeout(timer); timer = setTimeout(() => f(...told), milliseconds); };
  call.cancel = () => clearTimeout(timer);
  return call;
}

// One request at a time: a newer one waits for the answer of the one before, those between are dropped.
export function latest(work) {
  let running = false;
  let waiting = null;
  return async function run(...told) {
    if (running) { waiting = told; return; }
    running = true;
    try { await work(...told); } finally {
      running = false;
      if (waiting) { const next = waiting; waiting = null; run(...next); }
    }
  };
}

// Pixels as a canvas: colours is a function from a byte to [red, green, blue].
export function paintBytes(canvas, bytes, rows, columns, colours) {
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  for (let k = 0; k < bytes.length; k++) {
    const colour = colours(bytes[k], k);
    image.data.set([colour[0], colour[1], colour[2], 255], 4 * k);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

export const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

export function toBase64(bytes) {
  let text = "";
  for (let k = 0; k < bytes.length; k += 32768) text += String.fromCharCode(...bytes.subarray(k, k + 32768));
  return btoa(text);
}

// Colours that can be told apart on both grounds.
export const PALETTE = [
  [43, 108, 176], [221, 122, 59], [60, 141, 107], [201, 182, 66], [148, 86, 170], [196, 74, 84], [94, 178, 200],
  [140, 140, 140],
];

// What is known of an answer: its guarantee, bounds or gap, in words that stand beside it.
export function badge(guarantee) {
  return h("span", { class: `badge ${guarantee === "exact" ? "good" : "warn"}`, "data-guarantee": guarantee }, guarantee);
}

export const decodingBadge = ({ optimal, gap }) => h("span", { class: `badge ${optimal ? "good" : "warn"}` },
  optimal ? "proven best" : gap === null ? "no bound known" : `at most ${number(gap, 3)} below the best`);

// Rows of names and values.
export const facts = (rows, attributes = {}) => h("dl", { class: "facts", ...attributes },
  rows.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

export const seconds = (s) => (s < 1 ? `${number(1000 * s, 3)} ms` : `${number(s, 3)} s`);

// A label with a bar of a share of one.
export const bar = (label, share, attributes = {}) => h("div", { ...attributes, class: `bar ${attributes.class ?? ""}` },
  h("span", { class: "name", title: label }, label),
  h("span", { class: "track" }, h("span", { class: "fill", style: { width: `${100 * Math.min(1, share)}%` } })),
  h("span", { class: "number" }, percent(share)));

// A label with a bar to the left or to the right of the middle; `most` fills half.
export function weightBar(label, weight, most) {
  const share = most > 0 ? Math.min(1, Math.abs(weight) / most) * 50 : 0;
  return h("div", { class: "bar" }, h("span", { class: "name", title: label }, label),
    h("span", { class: "track middle" }, h("span", { class: `fill ${weight < 0 ? "minus" : "plus"}`,
      style: { width: `${share}%`, left: weight < 0 ? `${50 - share}%` : "50%" } })),
    h("span", { class: "number" }, `${weight > 0 ? "+" : ""}${number(weight, 3)}`));
}

// A field whose value outlives a reload of the model and of the page, in this tab alone.
export function remembered(key, input) {
  const name = `${key}:${location.pathname}`;
  try {
    const kept = sessionStorage.getItem(name);
    if (kept !== null) input.value = kept;
  } catch { /* private windows */ }
  input.addEventListener("input", () => {
    try { sessionStorage.setItem(name, input.value); } catch { /* too long, or a private window */ }
  });
  return input;
}
