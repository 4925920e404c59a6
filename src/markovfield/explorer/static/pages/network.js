// The page of discrete networks: variables at the left, the graph in the middle, panels at the right.
import { h, number, replace, styles } from "../dom.js";
import { Graph } from "./network/graph.js";
import { saveCode, savePdf, savePng, saveReport, saveSvg } from "./network/exports.js";
import * as analyse from "./network/panels/analyse.js";
import * as decode from "./network/panels/decode.js";
import * as evidence from "./network/panels/evidence.js";
import * as messages from "./network/panels/messages.js";
import * as plan from "./network/panels/plan.js";
import * as separate from "./network/panels/separate.js";
import * as structure from "./network/panels/structure.js";
import * as variable from "./network/panels/variable.js";
import { action, choice, duration } from "./network/parts.js";
import { writeEvidence } from "./network/state.js";
import { Store } from "./network/store.js";
import { variableList } from "./network/variables.js";

const PANELS = { variable, evidence, decode, separate, analyse, structure, messages, plan };
// Up to so many variables the whole network is drawn with bars; up to so many at all; else so many around one.
const MOST_BARS = 45, MOST_WHOLE = 120, NEAREST = 30;
// A layout that takes longer, in milliseconds, is said to be under way.
const PATIENCE = 400;
// What is drawn smaller than this is not read: a part is shown then.
const LEAST = 0.55;
// What the rounding of thousands of products leaves of log 1.
const rounded = (x) => (Math.abs(x) < 1e-10 ? 0 : x);
// Where a large network is opened: a variable of many neighbours, but not of more than can be drawn well.
const MANY = 10;

// What was looked at in this tab before the page was loaded again, or the model's file had changed.
const PLACE = `network:${location.pathname}`;
function lookedAt() {
  try { return JSON.parse(sessionStorage.getItem(PLACE)) ?? {}; } catch { return {}; }
}

export async function mount(root, context) {
  await styles("pages/network.css");
  const store = new Store(context, await context.call("describe"));
  const n = store.model.variables.length;
  const graph = new Graph(store);
  const { directed, layouts } = store.model;
  const view = { scope: n <= MOST_WHOLE ? "whole" : "near", style: n <= MOST_BARS ? "bars" : "names",
    layout: layouts.includes("grid") ? "grid" : directed ? "layered" : "force", moral: false };
  const degrees = store.model.variables.map(() => 0);
  for (const edge of store.model.edges) for (const v of edge) degrees[v]++;
  const fair = degrees.map((d) => (d <= MANY ? d : 0));
  let centre = fair.indexOf(Math.max(...fair));
  let opened = [];
  let leave = null, drawing = 0;
  const before = lookedAt();
  if (before.n === n) Object.assign(view, before.view);
  const selected = store.model.variables.findIndex(({ name }) => name === before.selected);
  if (selected >= 0) centre = selected;

  // ---- the graph -----------------------------------------------------------------------------------------------------

  // What was set by intervention when the network was drawn: the moral graph and blankets depend on it.
  let only = null;
  const setNow = () => Object.keys(store.evidence.do).join();
  let set = setNow();
  const drawAgain = () => {
    if ((view.moral || view.scope === "blanket") && set !== setNow()) draw(true);
  };

  async function draw(keep = false) {
    if (!n) {
      Object.assign(placing, { textContent: "The model has no variables.", hidden: false });
      return;
    }
    const now = ++drawing;
    graph.svg.classList.add("busy");
    const slow = setTimeout(() => { placing.hidden = now !== drawing; }, PATIENCE);
    try {
      let nodes;
      let note = "";
      if (only) nodes = only;
      else if (view.scope !== "whole") {
        const near = view.scope === "near";
        const hops = near ? 99 : view.scope === "blanket" ? "blanket" : Number(view.scope);
        const found = await store.call("neighbourhood", store.asked({ variable: centre, hops, opened, ...(near ? { most: NEAREST } : {}) }));
        nodes = found.nodes;
        if (found.left_out && !near) note = `${found.left_out} further variables within ${hops} steps are left out.`;
      }
      const found = await store.call("drawing", store.asked({ nodes, style: view.style, layout: view.layout, moral: view.moral }));
      set = setNow();
      if (now !== drawing) return;
      graph.draw({ ...found, moral: view.moral }, view.style);
      const point = graph.nodes.get(store.selected ?? centre) ?? graph.nodes.get(centre);
      if (!keep) graph.open(point?.at, view.scope === "whole" ? 0 : LEAST);
      else if (point) graph.centre(point.at);
      if (note) context.tell(note);
    } catch (error) {
      if (now === drawing) context.tell(error.message, "error");
    }
    clearTimeout(slow);
    if (now === drawing) {
      placing.hidden = true;
      graph.svg.classList.remove("busy");
    }
  }

  function showVariable(v) {
    if (!graph.nodes.has(v)) {
      centre = v;
      opened = [];
      const few = only || view.scope !== "whole";
      only = null;
      if (few) draw();
    }
    if (root.dataset.view === "variables") look("details");
  }

  // ---- around it -----------------------------------------------------------------------------------------------------

  const list = variableList(store, showVariable);
  const strip = h("div", { class: "strip", role: "group", "aria-label": "Evidence" });
  const working = h("span", { class: "working", hidden: true }, "computing ... ", action("Stop", () => store.stop(), { class: "small", "data-do": "stop" }));
  const badge = h("div", { class: "answer", role: "status", "aria-live": "polite" });
  const menu = h("details", { class: "menu" }, h("summary", {}, "Export"), h("div", {},
    [["SVG", () => saveSvg(store, graph)], ["PNG", () => savePng(store, graph)], ["PDF", () => savePdf(store)],
      ["Code", () => saveCode(store)], ["Report", () => saveReport(store, graph)]].map(([text, work]) =>
      action(text, async () => {
        menu.open = false;
        try { await work(); } catch (error) { context.tell(error.message, "error"); }
      }, { "data-export": text.toLowerCase() }))));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  const outside = (event) => { if (!menu.contains(event.target)) menu.open = false; };
  document.addEventListener("pointerdown", outside);
  const choose = (name) => (value) => {
    view[name] = value;
    keepView();
    if (name === "scope" && store.selected !== null) centre = store.selected;
    if (name === "scope") {
      opened = [];
      only = null;
    }
    draw();
  };
  graph.expand = async (v) => {
    store.select(v);
    if (only) only = [...new Set([...only, ...(await store.call("neighbourhood", { variable: v, hops: 1 })).nodes])];
    else opened.push(v);
    draw(true);
  };
  // These variables and no others, until something else is wanted.
  graph.showOnly = (nodes) => {
    only = nodes;
    if (root.dataset.view !== "graph" && getComputedStyle(switcher).display !== "none") look("graph");
    return draw();
  };
  const moral = h("input", { type: "checkbox", checked: view.moral, onchange: () => choose("moral")(moral.checked) });
  const toolbar = h("div", { class: "toolbar", role: "toolbar", "aria-label": "Drawing" },
    choice("Show", [...(n <= store.model.most_drawn ? [["whole", "whole network"]] : []), ["near", `nearest ${NEAREST}`], ["blanket", "Markov blanket"], ["1", "1 step around"], ["2", "2 steps around"], ["3", "3 steps around"]], view.scope, choose("scope")),
    choice("Nodes", [["bars", "with bars"], ["names", "names only"]], view.style, choose("style")),
    choice("Layout", layouts.map((x) => [x, { layered: "in layers", force: "by distance", grid: "as a grid" }[x]]), view.layout, choose("layout")),
    directed ? h("label", { class: "check", title: "Parents joined, directions dropped" }, moral, "moral graph") : null,
    menu);
  const placing = h("div", { class: "placing", role: "status", hidden: true }, "placing the variables ...");
  const zoom = h("div", { class: "zoom", role: "group", "aria-label": "Size of the drawing" },
    action("−", () => graph.zoom(0.8), { "aria-label": "Smaller" }), action("+", () => graph.zoom(1.25), { "aria-label": "Larger" }),
    action("Fit", () => graph.fit()));

  const tabs = h("div", { class: "panel-tabs", role: "tablist", "aria-label": "Panels" });
  const panel = h("div", { class: "panel", role: "tabpanel", id: "panel", tabindex: "-1" });
  const wider = h("button", { type: "button", class: "wider small", "aria-pressed": "false", "aria-label": "Wide details",
    title: "More room for the details", onclick: () => {
      const on = root.querySelector(".network").classList.toggle("wide-details");
      wider.setAttribute("aria-pressed", on);
    } }, "⇤");

  function openPanel(name) {
    leave?.();
    replace(panel);
    for (const tab of tabs.children) {
      tab.setAttribute("aria-selected", tab.dataset.panel === name);
      tab.tabIndex = tab.dataset.panel === name ? 0 : -1;
    }
    panel.dataset.panel = name;
    leave = PANELS[name].mount(panel, store, graph) ?? null;
    keepView();
  }
  function keepView() {
    const told = { n, view, panel: panel.dataset.panel, selected: store.selected === null ? null : store.name(store.selected) };
    try { sessionStorage.setItem(PLACE, JSON.stringify(told)); } catch { /* private windows */ }
  }
  replace(tabs, Object.entries(PANELS).map(([name, { title }]) => h("button", { type: "button", role: "tab", "data-panel": name, "aria-controls": "panel", onclick: () => openPanel(name) }, title)));
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...tabs.children];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    next.click();
  });

  function showStrip() {
    const { evidence: e } = store;
    const chip = (v, text, kind) => h("button", { type: "button", class: `chip ${kind}`, "aria-label": `Forget ${store.name(v)}`,
      title: `Forget ${store.name(v)}`, onclick: () => store.forget(v) }, `${store.name(v)} ${text} ×`);
    replace(strip, store.pieces ? [
      Object.entries(e.do).map(([v, k]) => chip(v, `:= ${store.states(v)[k]}`, "done")),
      Object.entries(e.states).map(([v, k]) => chip(v, `= ${store.states(v)[k]}`, "seen")),
      Object.keys(e.likelihoods).map((v) => chip(v, "~ likelihoods", "seen")),
      action("Clear", () => store.clear(), { class: "small", "data-do": "clear" }),
    ] : h("span", { class: "hint" }, "No evidence: click a state"));
  }

  function showAnswer() {
    const { answer } = store;
    const [low, high] = answer.bounds;
    const good = answer.guarantee === "exact" ? "good" : "warn";
    const bounded = low !== null && high !== null && low < high ? ` in [${number(low, 5)}, ${number(high, 5)}]` : answer.error ? ` ± ${number(answer.error, 2)}` : "";
    const bound = { upper: "≤ ", lower: "≥ " }[answer.guarantee] ?? "";
    replace(badge, h("span", { class: `badge ${good}`, title: "of log Z; probabilities are exact where it says exact, else approximate" },
      bound ? `${answer.guarantee} bound` : answer.guarantee), h("span", {}, answer.method.replaceAll("_", " ")),
      answer.converged ? null : h("span", { class: "badge bad" }, "not converged"),
      answer.log_partition === null ? null : h("span", {}, `log Z ${bound}${number(rounded(answer.log_partition), 5)}${bounded}`),
      answer.conflict > 0 ? h("span", { class: "badge bad", title: "log2 of the product of P(e) of all pieces over P of all together" }, `conflict ${number(answer.conflict, 2)} bits`) : null,
      h("span", { class: "soft" }, duration(answer.seconds)));
    root.dataset.answered = writeEvidence(store.good.evidence);
    root.dataset.method = answer.method;
  }

  function look(name) {
    root.dataset.view = name;
    for (const button of switcher.children) button.setAttribute("aria-pressed", button.dataset.view === name);
    if (name === "graph") graph.refit();
  }
  const switcher = h("div", { class: "switcher", role: "group", "aria-label": "Parts of the page" },
    [["variables", "Variables"], ["graph", "Graph"], ["details", "Details"]].map(([name, text]) =>
      h("button", { type: "button", "data-view": name, onclick: () => look(name) }, text)));

  replace(root, h("div", { class: "network" },
    h("aside", { class: "variables", "aria-label": "Variables" }, list.element),
    // How far the answer can be trusted stays in sight, whatever else is looked at.
    h("div", { class: "status" }, badge, working, strip),
    h("section", { class: "middle", "aria-label": "Graph" }, toolbar, h("div", { class: "stage" }, graph.svg, placing, zoom)),
    h("aside", { class: "details", "aria-label": "Details" }, h("div", { class: "panel-head" }, tabs, wider), panel), switcher));
  look("graph");
  if (selected >= 0) store.select(selected);
  openPanel(before.panel in PANELS ? before.panel : "variable");
  const off = [store.on("select", keepView), store.on("evidence", showStrip), store.on("answer", showAnswer), store.on("answer", drawAgain), store.on("busy", (busy) => {
    working.hidden = !busy;
    badge.setAttribute("aria-busy", String(busy));
  })];
  const keys = (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "/" && !typing) {
      if (root.dataset.view === "graph" && getComputedStyle(switcher).display !== "none") look("variables");
      list.search.focus();
    } else if (event.key === "z" && (event.ctrlKey || event.metaKey) && !typing) store.undo();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", keys);
  const watching = new ResizeObserver(() => graph.refit());
  watching.observe(graph.svg);
  showStrip();
  await Promise.all([draw(), store.refresh()]);
  return () => {
    leave?.();
    store.leave();
    off.forEach((f) => f());
    document.removeEventListener("keydown", keys);
    document.removeEventListener("pointerdown", outside);
    watching.disconnect();
  };
}
