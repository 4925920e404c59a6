// Belief propagation on the factor graph, message by message; and how far sweeps still move.
import { h, number, percent, replace, svg } from "../../../dom.js";
import { Canvas } from "../canvas.js";
import { action, asking, choice, field } from "../parts.js";

export const title = "Messages";

export function mount(root, store) {
  const place = h("div"), residualPlace = h("div");
  let algebra = "sum", damping = 0, timer = null;

  const run = async (signal) => {
    clearInterval(timer);
    const found = await store.call("messages", store.asked({ algebra }), signal);
    const n = found.names.length;
    const canvas = new Canvas("Messages on the factor graph");
    const lines = new Map();
    found.scopes.forEach((scope, f) => scope.forEach((v) => lines.set(`${v}-${n + f}`, svg("path", { class: "edge",
      d: `M${found.centres[v].join(" ")}L${found.centres[n + f].join(" ")}` }))));
    const beliefs = [];
    const boxes = found.centres.map(([x, y], i) => {
      const [width, height] = found.sizes[i];
      const group = svg("g", { class: i < n ? "bp-variable" : "bp-factor", transform: `translate(${x - width / 2} ${y - height / 2})` },
        svg("title", {}, i < n ? found.names[i] : `factor of ${found.scopes[i - n].map((v) => found.names[v]).join(", ")}`),
        svg("rect", { class: "box", width, height, rx: i < n ? 8 : 1 }));
      if (i < n) {
        // A column for each state below the name; of many states the first twelve.
        const wide = (width - 10) / Math.min(found.steps[0].beliefs[i].length, 12);
        const columns = found.steps[0].beliefs[i].slice(0, 12).map((_, k) => svg("rect", { class: "after", x: 5 + k * wide, width: Math.max(wide - 2, 1) }));
        group.append(svg("text", { x: width / 2, y: 15, "text-anchor": "middle" }, found.names[i].slice(0, 18)),
          svg("path", { class: "floor", d: `M5 ${height - 4}H${width - 5}` }), ...columns);
        beliefs.push({ columns, foot: height - 4, room: height - 26 });
      }
      return group;
    });
    const moving = svg("g");
    replace(canvas.content, svg("g", {}, [...lines.values()]), moving, svg("g", {}, boxes));
    canvas.size = [found.width, found.height];
    requestAnimationFrame(() => canvas.fit());
    new ResizeObserver(() => canvas.refit()).observe(canvas.svg);
    const words = h("div", { class: "step", "aria-live": "polite" });
    const table = h("table", { class: "numbers" });
    const slider = h("input", { type: "range", min: "0", max: found.steps.length - 1, value: "0", "aria-label": "Step of the messages", oninput: () => show() });
    const who = (i) => (i < n ? found.names[i] : `f(${found.scopes[i - n].map((v) => found.names[v]).join(", ")})`);

    function show() {
      const k = Number(slider.value);
      const step = found.steps[k];
      step.beliefs.forEach((values, v) => {
        const { columns, foot, room } = beliefs[v];
        columns.forEach((column, i) => {
          column.setAttribute("height", (values[i] * room).toFixed(1));
          column.setAttribute("y", (foot - values[i] * room).toFixed(1));
        });
        boxes[v].querySelector("title").textContent = `${found.names[v]}: ${values.map((p) => number(p, 3)).join(", ")}`;
      });
      for (const line of lines.values()) line.classList.remove("hot");
      replace(moving, step.messages.map((m) => {
        const key = m.from < n ? `${m.from}-${m.to}` : `${m.to}-${m.from}`;
        if (m.moved > 1e-12 || found.forest) lines.get(key).classList.add("hot");
        const [a, b] = [found.centres[m.from], found.centres[m.to]];
        const dot = svg("circle", { class: "message", r: 4 + 5 * Math.min(1, m.moved), cx: a[0], cy: a[1] },
          svg("title", {}, `${who(m.from)} to ${who(m.to)}: ${m.values.map((p) => number(p, 3)).join(", ")}`));
        const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
        const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
        if (still) dot.setAttribute("transform", `translate(${0.6 * dx} ${0.6 * dy})`);
        else dot.animate([{ transform: "translate(0, 0)" }, { transform: `translate(${0.8 * dx}px, ${0.8 * dy}px)` }], { duration: 600, fill: "forwards", easing: "ease-in-out" });
        return dot;
      }));
      const only = step.messages.length === 1 ? step.messages[0] : null;
      replace(table, found.names.map((name, v) => h("tr", {}, h("td", {}, name), h("td", {}, step.beliefs[v].map((p) => number(p, 4)).join("  ")))));
      replace(words, h("p", {}, k === 0 ? "No message was sent yet." : only
        ? `${k}. ${who(only.from)} tells ${who(only.to)}: [${only.values.map((p) => number(p, 3)).join(", ")}]`
        : `Sweep ${k}: ${step.messages.length} messages, the largest change ${number(step.residual, 2)}.`));
    }

    const forward = () => { slider.value = Number(slider.value) + 1; show(); };
    const play = action("Play", () => {
      if (timer) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
      if (Number(slider.value) === found.steps.length - 1) slider.value = 0;
      play.textContent = "Pause";
      timer = setInterval(() => {
        if (!slider.isConnected || Number(slider.value) >= found.steps.length - 1) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
        forward();
      }, 800);
    });
    show();
    return [h("p", { class: "hint" }, found.forest ? "A forest: two passes, and the beliefs are exact."
      : `The graph has cycles: sweeps ${found.converged ? "converge" : "have not converged"}, and beliefs are approximate.`),
    h("div", { class: "small-canvas" }, canvas.svg), slider,
    h("div", { class: "line" }, action("Back", () => { slider.value = Number(slider.value) - 1; show(); }), action("Step", forward, { "data-do": "message" }), play), words,
    h("details", { class: "fold" }, h("summary", {}, algebra === "sum" ? "Beliefs after this step" : "Max-beliefs after this step, the best state at one"), table)];
  };

  const residuals = async (signal) => {
    const found = await store.call("residuals", store.asked({ damping }), signal);
    const logs = found.residuals.map((r) => Math.log10(Math.max(r ?? 1e-16, 1e-16)));
    const [low, high] = [Math.min(...logs, -6), Math.max(...logs, 0)];
    const width = 300, height = 140, left = 40, top = 8;
    const x = (k) => left + ((width - left - 8) * k) / Math.max(1, logs.length - 1);
    const y = (value) => top + ((height - top - 24) * (high - value)) / (high - low);
    const ticks = [0, 0.5, 1].map((t) => Math.round(low + t * (high - low)));
    return [h("p", {}, `${found.iterations} sweeps, ${found.converged ? "converged" : "not converged"}; Bethe log Z ${number(found.bethe, 6)}.`),
      svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Residuals by sweep, logarithmic" },
        ticks.map((t) => [svg("path", { class: "grid", d: `M${left} ${y(t)}H${width - 8}` }), svg("text", { x: left - 5, y: y(t) + 4, "text-anchor": "end" }, `1e${t}`)]),
        svg("path", { class: "line", d: logs.map((value, k) => `${k ? "L" : "M"}${x(k).toFixed(1)} ${y(value).toFixed(1)}`).join("") }),
        logs.length < 60 ? logs.map((value, k) => svg("circle", { cx: x(k), cy: y(value), r: 2.5 })) : null,
        svg("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, `sweeps 1 to ${logs.length}`))];
  };

  root.append(
    h("div", { class: "line" }, field("Algebra", choice("Algebra", [["sum", "sum (marginals)"], ["max", "max (best states)"]], algebra, (x) => { algebra = x; })),
      asking("Send messages", place, run, { "data-do": "messages" }, store)), place,
    h("h4", {}, "Residuals of loopy belief propagation"),
    h("div", { class: "line" }, field("Damping", choice("Damping", [0, 0.25, 0.5, 0.75].map((x) => [x, String(x)]), damping, (x) => { damping = Number(x); })),
      asking("Run", residualPlace, residuals, { "data-do": "residuals" }, store)), residualPlace);
  return () => clearInterval(timer);
}
