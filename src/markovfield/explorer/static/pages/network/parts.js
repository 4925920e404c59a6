// Pieces that several panels share.
import { h, number, percent, replace } from "../../dom.js";

// One line with a bar behind and one in front.
export function barRow(label, before, now, attributes = {}) {
  return h(attributes.onclick ? "button" : "div",
    { type: attributes.onclick ? "button" : null, ...attributes, error: null, class: `bar-row ${attributes.class ?? ""}` },
    h("span", { class: "label", title: label }, label),
    h("span", { class: "track" },
      before === null || before === undefined ? null : h("span", { class: "before", style: { width: `${100 * before}%` } }),
      h("span", { class: "after", style: { width: `${100 * now}%` } }),
      attributes.error ? h("span", { class: "error", title: `standard error ${percent(attributes.error)}`,
        style: { left: `${100 * Math.max(0, now - attributes.error)}%`, width: `${100 * Math.min(1 - Math.max(0, now - attributes.error), 2 * attributes.error)}%` } }) : null),
    h("span", { class: "number", title: number(now, 12) }, percent(now), attributes.error ? h("small", {}, ` ±${(100 * attributes.error).toFixed(1)}`) : null));
}

// Seconds for people.
export const duration = (seconds) => (seconds < 1 ? `${number(1000 * seconds, 2)} ms` : `${number(seconds, 3)} s`);

// A number to the left or to the right of a line in the middle; `most` fills half the width.
export function signedRow(label, value, most, text, title) {
  const share = most > 0 && value !== null ? Math.min(1, Math.abs(value) / most) * 50 : 0;
  return h("div", { class: "signed-row", title },
    h("span", { class: "label" }, label),
    h("span", { class: "track" }, h("span", { class: value < 0 ? "minus" : "plus",
      style: { width: `${share}%`, left: value < 0 ? `${50 - share}%` : "50%" } })),
    h("span", { class: "number" }, text));
}

export function choice(label, options, value, onchange) {
  const select = h("select", { "aria-label": label, onchange: () => onchange(select.value) },
    options.map(([key, text]) => h("option", { value: key, selected: String(key) === String(value) }, text)));
  return select;
}

export const field = (label, ...content) => h("label", { class: "field" }, h("span", {}, label), content);

export const action = (text, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, text);

// Numbers that are not exact say so where they stand.
export const promise = ({ guarantee }) => (guarantee === "exact" ? null
  : h("p", {}, h("span", { class: "badge warn" }, guarantee), " These numbers come from an approximate answer."));

export const variableLink = (store, v) =>
  h("button", { type: "button", class: "link", onclick: () => store.select(v) }, store.name(v));

// A button that asks the server and shows what it said, or the sentence that says why not; what takes long can be stopped.
// With a store, what was said is marked as old once the evidence is another one, or the part of it that counts.
export function asking(text, place, work, attributes = {}, store = null, part = (evidence) => evidence) {
  let asked = null;
  const button = action(text, async () => {
    button.disabled = true;
    const stopping = new AbortController();
    asked = store ? { part: part(store.evidence) } : null;
    place.classList.remove("old");
    place.replaceChildren(h("p", { class: "busy" }, "working ... ", action("Stop", () => stopping.abort(), { class: "small", "data-do": "stop-work" })));
    try {
      replace(place, await work(stopping.signal));
    } catch (error) {
      asked = null;
      place.replaceChildren(stopping.signal.aborted ? h("p", { class: "hint" }, "Stopped.") : h("p", { class: "problem", role: "alert" }, error.message));
    }
    mark();
    button.disabled = false;
  }, { class: "primary", ...attributes });
  const note = h("p", { class: "problem", role: "status" }, "The evidence has changed since: ask again.");
  function mark() {
    const old = Boolean(asked) && asked.part !== part(store.evidence);
    place.classList.toggle("old", old);
    if (old) place.prepend(note);
    else note.remove();
  }
  const off = store?.on("evidence", () => (place.isConnected ? mark() : off()));
  return button;
}
