// What to observe next, and what a posterior is sensitive to.
import { h, number, percent } from "../../../dom.js";
import { asking, choice, field, promise, variableLink } from "../parts.js";

export const title = "Analyse";

// What is less is what rounding leaves of nothing.
const LEAST_BITS = 1e-9;

export function mount(root, store) {
  const told = h("div"), tornado = h("div"), head = h("div");
  let state = 0;

  function show() {
    const v = store.selected;
    const known = v !== null && (v in store.evidence.states || v in store.evidence.do);
    head.replaceChildren(v === null ? h("p", { class: "hint" }, "Select the target variable first.")
      : known ? h("p", { class: "hint" }, `${store.name(v)} is known: select a variable that is not observed as the target.`) : h("div", { class: "line" },
      field("Target", h("strong", {}, store.name(v))),
      field("State", choice("State of the target", store.states(v).map((s, k) => [k, s]), state, (k) => { state = Number(k); }))));
    if (v !== null && state >= store.states(v).length) state = 0;
    for (const button of root.querySelectorAll("button.primary")) button.disabled = v === null || known;
  }

  const observe = async (signal) => {
    const v = store.selected;
    const found = await store.call("observe_next", store.asked({ target: v }), signal);
    const most = Math.max(found.rows[0]?.bits ?? 0, LEAST_BITS);
    if (most === LEAST_BITS) return h("p", { class: "hint" }, `Nothing that can be observed tells anything about ${store.name(v)}.`);
    return [promise(found), h("p", { class: "hint" }, `What tells most about ${store.name(v)}, of ${found.ranked} variable${found.ranked === 1 ? "" : "s"}. `
      + "Bits: the fall of the target's entropy. Value: of guessing its state right, 1 for a right guess."),
    h("table", { class: "numbers" }, h("tr", {}, ["variable", "bits", "", "value"].map((word, i) => h("th", { class: i ? "right" : null }, word))),
      found.rows.slice(0, 15).map((row) => h("tr", {}, h("td", {}, variableLink(store, row.variable)),
        h("td", { class: "right" }, number(row.bits, 3)),
        h("td", { class: "wide" }, h("span", { class: "track" }, h("span", { class: "after", style: { width: `${(100 * row.bits) / most}%` } }))),
        h("td", { class: "right" }, number(row.value, 3)))))];
  };

  const sensitive = async (signal) => {
    const v = store.selected;
    const found = await store.call("tornado", store.asked({ target: v, state }), signal);
    const span = (row) => [Math.min(row.low, row.high), Math.max(row.low, row.high)];
    const rows = found.rows.toSorted((a, b) => (span(b)[1] - span(b)[0]) - (span(a)[1] - span(a)[0]));
    const low = Math.min(found.probability, ...rows.map((row) => span(row)[0]));
    const high = Math.max(found.probability, ...rows.map((row) => span(row)[1]));
    const at = (p) => (high > low ? (100 * (p - low)) / (high - low) : 50);
    return [h("p", {}, `P(${store.name(v)} = ${store.states(v)[state]}) = ${percent(found.probability)}`),
      h("p", { class: "hint" }, "What it becomes when the odds of one entry of a table are halved or doubled; its row's other entries keep their proportions."),
      h("div", { class: "tornado" }, rows.map((row) => {
        const given = Object.entries(row.given).map(([k, x]) => `${k}=${x}`).join(", ");
        const [a, b] = span(row);
        return h("div", { class: "entry", title: `derivative ${number(row.derivative, 3)}` },
          h("div", { class: "label" }, variableLink(store, row.variable), `=${row.state}${given ? ` | ${given}` : ""}: ${number(row.entry, 3)}`),
          h("div", { class: "track" },
            h("span", { class: "span", style: { left: `${at(a)}%`, width: `${at(b) - at(a)}%` } }),
            h("span", { class: "now", style: { left: `${at(found.probability)}%` } })),
          h("div", { class: "ends" }, `halved ${percent(row.low)}, doubled ${percent(row.high)}`));
      }))];
  };

  root.append(head,
    h("h4", {}, "What to observe next"), asking("Rank observations", told, observe, { "data-do": "observe" }, store), told,
    ...(store.model.directed ? [h("h4", {}, "Sensitivity"), asking("Draw the tornado", tornado, sensitive, { "data-do": "tornado" }, store), tornado] : []));
  const off = [store.on("select", show), store.on("evidence", show)];
  show();
  return () => off.forEach((f) => f());
}
