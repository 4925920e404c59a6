// The likeliest assignment, and the n best.
import { h, number, percent } from "../../../dom.js";
import { action, asking, field, variableLink } from "../parts.js";

export const title = "Decode";

export function mount(root, store) {
  const place = h("div");
  const count = h("input", { type: "number", min: "1", max: "20", value: "3", "aria-label": "How many" });

  const work = async () => {
    const found = await store.call("best", store.asked({ n_best: Math.max(1, Math.min(20, Number(count.value) || 1)) }));
    const best = found.solutions[0].states;
    return [
      h("p", {}, h("span", { class: `badge ${found.optimal ? "good" : "warn"}` }, found.optimal ? "proven best" : `gap ${number(found.gap, 3)}`),
        ` by ${found.method} in ${number(found.seconds, 2)} s`),
      found.solutions.map((one, i) => {
        const differs = one.states.map((k, v) => v).filter((v) => i === 0 || one.states[v] !== best[v]);
        const free = differs.filter((v) => !(v in store.evidence.states));
        return h("details", { class: "fold solution", open: i === 0 && free.length <= 60 },
          h("summary", {}, `${i + 1}. score ${number(one.score, 6)}`,
            one.probability === null ? "" : `, probability ${percent(one.probability)}`,
            i ? `, ${free.length} differ from the best` : ""),
          h("table", { class: "assignment" }, free.map((v) => h("tr", {},
            h("td", {}, variableLink(store, v)), h("td", {}, store.states(v)[one.states[v]])))),
          action("Take as evidence", () => store.change((e) => {
            one.states.forEach((k, v) => { if (!(v in e.do) && !(v in e.likelihoods)) e.states[v] = k; });
          })));
      }),
    ];
  };

  root.append(
    h("p", { class: "hint" }, "The assignments of all variables that are likeliest together, given the evidence (MPE)."),
    h("div", { class: "line" }, field("n best", count), asking("Decode", place, work, { "data-do": "decode" })), place);
}
