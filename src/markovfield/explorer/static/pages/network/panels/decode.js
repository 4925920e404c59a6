// The likeliest assignment, the n best, and the likeliest states of some variables.
import { h, number, percentOfLog, replace } from "../../../dom.js";
import { action, asking, duration, field, variableLink } from "../parts.js";

export const title = "Decode";

export function mount(root, store, graph) {
  const place = h("div", { "aria-live": "polite" }), chosen = h("div", { class: "set" });
  const some = new Set();
  const count = h("input", { type: "number", min: "1", max: "20", value: "3", "aria-label": "How many" });
  const picking = h("input", { type: "checkbox", onchange: () => { if (!picking.checked) some.clear(); show(); } });

  function show() {
    store.pick(picking.checked ? (v) => { if (!some.delete(v)) some.add(v); show(); } : null);
    graph.mark(picking.checked ? { nodes: { "set-a": [...some] } } : {});
    count.disabled = picking.checked;
    replace(chosen, picking.checked ? [...some].map((v) => h("button", { type: "button", class: "chip", "aria-label": `Take ${store.name(v)} out`,
      onclick: () => { some.delete(v); show(); } }, `${store.name(v)} ×`)) : null,
    picking.checked && !some.size ? h("span", { class: "hint" }, "click variables in the graph or the list; the others are summed out") : null);
  }

  const work = async (signal) => {
    if (picking.checked && !some.size) throw new Error("Pick the variables first.");
    const wanted = picking.checked ? { variables: [...some] } : { n_best: Math.max(1, Math.min(20, Number(count.value) || 1)) };
    const found = await store.call("best", store.asked(wanted), signal);
    const best = found.solutions[0].states;
    return [
      h("p", {}, h("span", { class: `badge ${found.optimal ? "good" : "warn"}` }, found.optimal ? "proven best" : `gap ${number(found.gap, 3)}`),
        ` by ${found.method.replaceAll("_", " ")} in ${duration(found.seconds)}`),
      found.refused ? h("p", { class: "hint" }, "Several best ones need exact inference, for which this model is too large: here is one.") : null,
      found.solutions.map((one, i) => {
        const told = found.variables.filter((v) => i === 0 || one.states[v] !== best[v]);
        const free = told.filter((v) => !(v in store.evidence.states) && !(v in store.evidence.do));
        return h("details", { class: "fold solution", open: i === 0 && free.length <= 60 },
          h("summary", {}, `${i + 1}. score ${number(one.score, 6)}`,
            one.log_probability === null ? "" : `, probability ${percentOfLog(one.log_probability)}`,
            i ? `, ${free.length} differ from the best` : ""),
          h("table", { class: "assignment" }, free.map((v) => h("tr", {},
            h("td", {}, variableLink(store, v)), h("td", {}, store.states(v)[one.states[v]])))),
          action("Take as evidence", () => store.change((e) => {
            for (const v of found.variables) if (!(v in e.do) && !(v in e.likelihoods)) e.states[v] = one.states[v];
          })));
      }),
    ];
  };

  root.append(
    h("p", { class: "hint" }, "The assignments of all variables that are likeliest together, given the evidence (MPE); or of some, with the others summed out (marginal MAP)."),
    h("div", { class: "line" }, field("n best", count), h("label", { class: "check" }, picking, "of picked variables only")), chosen,
    h("div", { class: "line" }, asking("Decode", place, work, { "data-do": "decode" }, store)), place);
  show();
  return () => {
    store.pick(null);
    graph.mark({});
  };
}
