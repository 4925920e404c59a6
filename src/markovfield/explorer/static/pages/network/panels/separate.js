// Separation by picking two sets; active paths are drawn, and told in words.
import { h, replace } from "../../../dom.js";
import { action } from "../parts.js";

export const title = "Separate";

export function mount(root, store, graph) {
  const sets = { a: new Set(), b: new Set(), given: new Set(Object.keys(store.evidence.states).map(Number)) };
  const words = { a: "A", b: "B", given: "Given" };
  let picking = "a", asked = 0;
  const place = h("div", { "aria-live": "polite" });
  const picker = h("div", { class: "sets" });

  function pick(v) {
    for (const [name, set] of Object.entries(sets)) {
      if (name !== picking) set.delete(v);
      else if (!set.delete(v)) set.add(v);
    }
    show();
  }

  function show() {
    replace(picker, Object.entries(sets).map(([name, set]) => h("div", { class: `set ${name}` },
      h("button", { type: "button", "aria-pressed": picking === name, "data-pick": name, onclick: () => { picking = name; show(); } }, words[name]),
      [...set].map((v) => h("button", { type: "button", class: "chip", "aria-label": `Take ${store.name(v)} out`,
        onclick: () => { set.delete(v); show(); } }, `${store.name(v)} ×`)),
      set.size ? null : h("span", { class: "hint" }, name === "given" ? "nothing" : "click variables"))));
    ask();
  }

  async function ask() {
    const now = ++asked;
    const marks = { dim: false, nodes: { "set-a": [...sets.a], "set-b": [...sets.b], "set-given": [...sets.given] }, paths: [] };
    if (!sets.a.size || !sets.b.size) {
      replace(place, h("p", { class: "hint" }, "Pick variables for A and for B in the graph or the list; Given starts with the evidence."));
      graph.mark(marks);
      return;
    }
    try {
      const found = await store.call("separation", store.asked({ a: [...sets.a], b: [...sets.b], given: [...sets.given] }));
      if (!found.separated) marks.paths = found.paths.map((p) => p.nodes);
      if (now !== asked) return;
      graph.mark(marks);
      // In a large network the way from A to B leads through what is not drawn.
      const along = [...new Set([...sets.a, ...sets.b, ...found.paths.flatMap((p) => p.nodes)])];
      const hidden = along.filter((v) => !graph.nodes.has(v)).length;
      replace(place,
        h("p", { class: "verdict" }, h("span", { class: `badge ${found.separated ? "good" : "warn"}` },
          found.separated ? (store.model.directed ? "d-separated" : "separated") : "connected"), " ", found.statement),
        found.paths.length ? h("h4", {}, found.separated ? "Paths, and what blocks them" : "Active paths, drawn in the graph") : null,
        hidden ? h("p", {}, action(found.paths.length ? "Draw these paths" : "Draw these variables", (event) => {
          event.target.parentElement.remove();
          graph.showOnly([...new Set([...along, ...sets.given])]);
        }, { "data-do": "paths" }), h("span", { class: "hint" }, ` ${hidden} of ${along.length} variables ${hidden === 1 ? "is" : "are"} not drawn.`)) : null,
        h("ol", { class: "paths" }, found.paths.map((p) => h("li", {}, h("button", { type: "button", class: "link",
          onclick: () => graph.mark({ ...marks, paths: [p.nodes] }) }, p.shown),
          h("ul", {}, p.why.map((sentence) => h("li", {}, sentence)))))));
    } catch (error) {
      if (now !== asked) return;
      graph.mark(marks);
      replace(place, h("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  store.pick(pick);
  root.append(picker, h("div", { class: "line" },
    action("Given = evidence", () => {
      sets.given = new Set(Object.keys(store.evidence.states).map(Number).filter((v) => !sets.a.has(v) && !sets.b.has(v)));
      show();
    }),
    action("Clear", () => { for (const set of Object.values(sets)) set.clear(); picking = "a"; show(); })), place);
  // What is observed is given, not asked about.
  if (store.selected !== null && !sets.given.has(store.selected)) sets.a.add(store.selected), (picking = "b");
  show();
  // Interventions and likelihoods of the evidence count as well.
  const off = store.on("answer", ask);
  return () => {
    off();
    store.pick(null);
    graph.mark({});
  };
}
