// The junction tree with its cliques, and elimination step by step.
import { h, number, replace, svg } from "../../../dom.js";
import { Canvas, path } from "../canvas.js";
import { action, asking, choice, field } from "../parts.js";

export const title = "Structure";

// Of the evidence only interventions change the structure.
const interventions = (evidence) => Object.keys(evidence.do).join();

export function mount(root, store, graph) {
  const treePlace = h("div"), stepPlace = h("div");
  let order = "min_fill";

  const tree = async (signal) => {
    const found = await store.call("junction_tree", store.asked(), signal);
    const canvas = new Canvas("Junction tree");
    const names = (those) => those.map((v) => store.name(v)).join(", ");
    const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
    const lines = found.edges.map((_, k) => svg("path", { class: "edge", d: path(found.curves[k]) }));
    const separators = found.separators.map((those, k) => {
      const curve = found.curves[k];
      const [x, y] = curve.length % 2 ? curve[(curve.length - 1) / 2] : [0, 1].map((i) => (curve[curve.length / 2 - 1][i] + curve[curve.length / 2][i]) / 2);
      const text = clip(names(those), 22);
      const wide = 7 * text.length + 12;
      return svg("g", { class: "separator", transform: `translate(${x} ${y})` }, svg("title", {}, `separator ${names(those)}`),
        svg("rect", { x: -wide / 2, y: -9, width: wide, height: 18, rx: 2 }), svg("text", { y: 4, "text-anchor": "middle" }, text));
    });
    const largest = Math.max(...found.states);
    const boxes = found.cliques.map((clique, i) => {
      const [x, y] = found.centres[i], [width, height] = found.sizes[i];
      const all = names(clique);
      return svg("g", { class: `clique${found.states[i] === largest ? " largest" : ""}`, tabindex: "0", role: "button", "aria-label": `clique ${all}, ${found.states[i]} states`,
        transform: `translate(${x - width / 2} ${y - height / 2})`,
        onclick: () => graph.mark({ dim: true, nodes: { near: clique } }),
        onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") graph.mark({ dim: true, nodes: { near: clique } }); } },
      svg("title", {}, `${all}\n${found.states[i]} states`), svg("rect", { class: "box", width, height, rx: 20 }),
      svg("text", { x: width / 2, y: 18, "text-anchor": "middle" }, clip(all, 30)),
      svg("text", { class: "state", x: width / 2, y: 34, "text-anchor": "middle" }, `${clique.length} variables, ${found.states[i]} states`));
    });
    replace(canvas.content, lines, separators, boxes);
    canvas.size = [found.width, found.height];
    const point = found.centres[found.states.indexOf(largest)];
    requestAnimationFrame(() => canvas.open(point, 0.5));
    new ResizeObserver(() => canvas.refit()).observe(canvas.svg);
    const sizes = new Map();
    for (const clique of found.cliques) sizes.set(clique.length, (sizes.get(clique.length) ?? 0) + 1);
    const most = Math.max(...sizes.values());
    return [h("p", {}, `${found.cliques.length} cliques, width ${found.treewidth}, 2^${number(found.log2_states, 3)} states in all; the largest, outlined in red, has ${largest} states. `,
      h("span", { class: "hint" }, "Click a clique to see it in the graph.")), h("div", { class: "small-canvas" }, canvas.svg),
    h("details", { class: "fold" }, h("summary", {}, "Sizes of cliques"), h("table", { class: "numbers" },
      h("tr", {}, ["variables", "", "cliques"].map((word) => h("th", {}, word))),
      [...sizes].sort(([a], [b]) => a - b).map(([size, times]) => h("tr", {}, h("td", {}, size),
        h("td", { class: "wide" }, h("span", { class: "track" }, h("span", { class: "after", style: { width: `${(100 * times) / most}%` } }))),
        h("td", { class: "right" }, times)))))];
  };

  const eliminate = async (signal) => {
    const found = await store.call("elimination", store.asked({ order }), signal);
    const names = (those) => those.map((v) => store.name(v)).join(", ");
    const words = h("div", { class: "step" });
    const slider = h("input", { type: "range", min: "0", max: found.steps.length, value: "0", "aria-label": "Step of the elimination", oninput: () => show() });
    let playing = null;
    const stop = () => { clearInterval(playing); playing = null; play.textContent = "Play"; };
    const play = action("Play", () => {
      if (playing) { stop(); return; }
      if (Number(slider.value) === found.steps.length) slider.value = 0;
      play.textContent = "Pause";
      playing = setInterval(() => {
        if (Number(slider.value) >= found.steps.length || !slider.isConnected) { stop(); return; }
        slider.value = Number(slider.value) + 1;
        show();
      }, 700);
    });
    const show = () => {
      const k = Number(slider.value);
      const gone = found.steps.slice(0, Math.max(0, k - 1)).map((s) => s.variable);
      const left = new Set(gone);
      const fill = found.steps.slice(0, k).flatMap((s) => s.fill).filter(([a, b]) => !left.has(a) && !left.has(b));
      const step = found.steps[k - 1];
      graph.mark(step ? { nodes: { "set-a": [step.variable], near: step.clique, gone }, edges: fill } : {});
      replace(words, step
        ? h("p", {}, h("strong", {}, `${k}. ${store.name(step.variable)}`), ` makes a clique of ${step.clique.length + 1} (${step.states} states)`,
          step.clique.length ? ` with ${names(step.clique)}` : "", `; ${step.fill.length} edges filled in. Width so far ${step.width}.`)
        : h("p", { class: "hint" }, `Order of ${found.steps.length} variables: width ${found.width}, ${found.fill} edges filled in.`));
    };
    show();
    return [slider, h("div", { class: "line" }, action("Back", () => { slider.value = Number(slider.value) - 1; show(); }),
      action("Step", () => { slider.value = Number(slider.value) + 1; show(); }, { "data-do": "step" }), play), words];
  };

  root.append(h("h4", {}, "Junction tree"), asking("Show the junction tree", treePlace, tree, { "data-do": "tree" }, store, interventions), treePlace,
    h("h4", {}, "Elimination, step by step"),
    h("div", { class: "line" }, field("Order", choice("Elimination order", [["min_fill", "min fill"], ["min_weight", "min weight"],
      ["min_degree", "min degree"], ["auto", "best of all"]], order, (x) => { order = x; })),
    asking("Eliminate", stepPlace, eliminate, { "data-do": "eliminate" }, store, interventions)), stepPlace);
  return () => graph.mark({});
}
