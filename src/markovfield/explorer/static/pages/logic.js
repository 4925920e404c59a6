// A Markov logic program, grounded: atoms to set, their probabilities, what pushes them, the likeliest world.
import { h, number, percent, replace, styles, svg } from "../dom.js";
import { badge, button, decodingBadge, facts, field, latest, panel, remembered, seconds, settled, useStyle, weightBar } from "./shared/controls.js";
import { codeFold, drawing } from "./shared/take.js";

const NEXT = { unknown: true, true: false, false: "unknown" };

export async function mount(root, context) {
  await useStyle();
  await styles("pages/logic.css");
  const about = await context.call("about");
  let world = null, answer = null, prior = null, best = null, chosen = null, truths = {}, given = { evidence: "", query: "" }, left = false;
  const nodes = new Map(), rows = new Map();
  const evidence = remembered("logic-evidence", h("textarea", { rows: 6, spellcheck: "false", name: "evidence", placeholder: "Friends(Anna, Bob)\n!Smokes(Bob)" }));
  const query = remembered("logic-query", h("input", { type: "text", name: "query", placeholder: "everything that is open" }));
  const said = h("div", { class: "said", role: "status", "aria-live": "polite" });
  const graphAt = h("div", {}), atomsAt = h("div", {}), whyAt = h("div", { class: "why" }), rulesAt = h("div", { class: "scroll" }), bestAt = h("div", {}), told = h("div", {});
  const search = h("input", { type: "search", oninput: () => filter() });
  const asked = (more = {}) => ({ ...given, truths, ...more });
  const code = codeFold(context, () => context.call("code", asked()));
  const failed = (error) => { if (!left) context.tell(error.message, "error"); };

  const ground = latest(async () => {
    try {
      const wanted = { evidence: evidence.value, query: query.value };
      const found = await context.call("ground", wanted);
      if (left) return;
      given = wanted;
      world = found;
      const names = new Set(world.atoms.map((atom) => atom.name));
      for (const name of Object.keys(truths)) if (!names.has(name)) delete truths[name];
      if (!names.has(chosen)) chosen = null;
      [answer, prior, best] = [null, null, null];
      context.calm();
      showWorld();
      await ask();
    } catch (error) { failed(error); }
  });

  const ask = latest(async () => {
    try {
      if (!prior) prior = Object.keys(truths).length ? await context.call("ask", { ...given, truths: {} }) : null;
      const found = await context.call("ask", asked());
      if (left) return;
      answer = found;
      prior ??= found;
      best = null;
      context.calm();
      showAnswer();
      code.refresh();
    } catch (error) { failed(error); }
  });

  const why = latest(async () => {
    const atom = chosen;
    if (!atom || atom in truths) { showWhy(null); return; }
    try {
      const found = await context.call("push", asked({ atom }));
      if (!left && chosen === atom) showWhy(found);
    } catch (error) { failed(error); }
  });

  // ---- what happens ------------------------------------------------------------------------------------------------

  const stateOf = (name) => (name in truths ? truths[name] : "unknown");
  function set(name, truth) {
    if (truth === "unknown") delete truths[name];
    else truths[name] = truth;
    choose(name, false);
    ask();
  }
  function choose(name, look = true) {
    chosen = name;
    mark();
    if (look) why();
  }
  function keys(event, name) {
    const truth = { t: true, f: false, u: "unknown", Delete: "unknown" }[event.key];
    if (truth !== undefined) set(name, truth);
    else if (event.key === "Enter" || event.key === " ") set(name, NEXT[stateOf(name)]);
    else return;
    event.preventDefault();
  }

  // ---- what is shown -----------------------------------------------------------------------------------------------

  function showWorld() {
    nodes.clear();
    rows.clear();
    replace(told, facts([["Ground atoms", world.n_atoms], ["Ground formulas", world.n_formulas],
      world.closed.length ? ["Closed", world.closed.join(", ")] : null]));
    replace(graphAt, world.drawing ? [drawing(context, "network", network(world.drawing)),
      h("p", {}, "Click an atom to set it true, false, unknown again; with the keyboard: T, F, U. The filled part is its probability.")]
      : h("p", {}, world.n_atoms ? "Too many atoms to draw: they are listed below." : "The evidence leaves nothing open."));
    replace(atomsAt, h("ul", { class: "atoms" }, world.atoms.map(({ name }) => row(name))),
      world.n_atoms > world.atoms.length ? h("p", {}, `${world.atoms.length} of ${world.n_atoms} atoms.`) : null);
    filter();
    showRules();
    replace(bestAt);
    replace(whyAt, h("p", {}, "Select an atom."));
    replace(said, h("span", {}, "working ..."));
  }

  function network(made) {
    const at = made.nodes;
    const lines = made.edges.map(([a, b]) => svg("line", { class: "link", x1: at[a].x, y1: at[a].y, x2: at[b].x, y2: at[b].y, "data-ends": JSON.stringify([at[a].name, at[b].name]) }));
    const boxes = at.map(({ name, x, y, width }) => {
      const share = svg("rect", { class: "share", x: x - width / 2, y: y - 14, width: 0, height: 28, rx: 6 });
      const mood = svg("text", { class: "small", x, y: y + 25, "text-anchor": "middle" });
      const node = svg("g", { class: "atom", tabindex: "0", role: "button", "data-atom": name, onclick: () => set(name, NEXT[stateOf(name)]),
        onkeydown: (event) => keys(event, name), onfocus: () => { if (chosen !== name) choose(name); } },
      svg("rect", { class: "box", x: x - width / 2, y: y - 14, width, height: 28, rx: 6 }), share,
      svg("text", { x, y: y + 4.5, "text-anchor": "middle" }, name), mood);
      nodes.set(name, { node, share, mood, width });
      return node;
    });
    return svg("svg", { class: "ground-network", viewBox: `-12 -24 ${Math.ceil(made.width) + 24} ${Math.ceil(made.height) + 60}`,
      width: Math.ceil(made.width) + 24, height: Math.ceil(made.height) + 60, role: "group", "aria-label": "Ground network" }, lines, boxes);
  }

  function row(name) {
    const fill = h("span", { class: "fill" }), before = h("span", { class: "before" }), shown = h("span", { class: "number" });
    const choice = (truth, text) => h("button", { type: "button", "aria-label": `${name} ${truth === "unknown" ? "unknown" : truth}`, "data-truth": String(truth),
      onclick: () => set(name, truth) }, text);
    const buttons = h("span", { class: "truth", role: "group", "aria-label": `Truth of ${name}` }, choice(true, "T"), choice(false, "F"), choice("unknown", "?"));
    const line = h("li", { "data-atom": name }, h("button", { type: "button", class: "bar", onclick: () => choose(name), onkeydown: (event) => { if (event.key !== "Enter" && event.key !== " ") keys(event, name); } },
      h("span", { class: "name", title: name }, name), h("span", { class: "track" }, before, fill), shown), buttons);
    rows.set(name, { line, fill, before, shown, buttons });
    return line;
  }

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    for (const [name, { line }] of rows) line.hidden = !name.toLowerCase().includes(wanted);
  }

  function mark() {
    for (const [name, { node }] of nodes) node.setAttribute("class", `atom ${name in truths ? "set" : ""} ${name === chosen ? "chosen" : ""}`);
    for (const [name, { line, buttons }] of rows) {
      line.className = `${name in truths ? "set" : ""} ${name === chosen ? "chosen" : ""}`;
      for (const one of buttons.children) one.setAttribute("aria-pressed", String(stateOf(name)) === one.dataset.truth);
    }
    for (const line of graphAt.querySelectorAll(".link")) line.setAttribute("class", `link ${JSON.parse(line.dataset.ends).includes(chosen) ? "near" : ""}`);
  }

  function showAnswer() {
    const [low, high] = answer.bounds;
    const within = low !== null && high !== null && high - low > 1e-9 * Math.max(1, Math.abs(high)) ? ` in [${number(low, 6)}, ${number(high, 6)}]` : "";
    replace(said, badge(answer.guarantee), answer.converged ? null : h("span", { class: "badge bad" }, "not converged"),
      h("span", {}, `${answer.method.replaceAll("_", " ")} in ${seconds(answer.seconds)}`),
      answer.log_partition === null ? null : h("span", {}, `log Z ${number(answer.log_partition, 6)}${within}`),
      answer.error === null ? null : h("span", {}, `standard errors up to ${number(answer.error, 2)}`),
      Object.keys(truths).length ? button("Forget all", () => { truths = {}; ask(); }) : null);
    for (const [name, { fill, before, shown }] of rows) {
      const p = answer.probabilities[name];
      fill.style.width = `${100 * p}%`;
      before.style.width = `${100 * (prior.probabilities[name] ?? 0)}%`;
      shown.textContent = percent(p);
    }
    for (const [name, { share, mood, node, width }] of nodes) {
      const p = answer.probabilities[name] ?? 0;
      share.setAttribute("width", (width * p).toFixed(1));
      mood.textContent = name in truths ? (truths[name] ? "true" : "false") : percent(p);
      node.setAttribute("aria-label", `${name}: ${mood.textContent}`);
    }
    mark();
    showRules();
    replace(bestAt, h("p", {}, "The world that is likeliest as a whole, given what was set."));
    why();
    root.dataset.answers = Number(root.dataset.answers ?? 0) + 1;
  }

  function showRules() {
    const columns = ["groundings", "satisfied by evidence", "violated by evidence", "open"];
    replace(rulesAt, h("table", { class: "table rules" }, h("thead", {}, h("tr", {}, ["formula", "weight", ...columns, "violated in the likeliest world"].map((t) => h("th", {}, t)))),
      h("tbody", {}, about.rules.map((rule, i) => h("tr", {}, h("td", { class: "text" }, rule.text), h("td", {}, rule.hard ? "hard" : number(rule.weight, 4)),
        columns.map((name) => h("td", {}, world.rules[name][i])),
        h("td", { class: best?.violated[i] ? "hot" : "" }, best ? best.violated[i] ?? "?" : ""))))));
  }

  function showWhy(found) {
    if (!chosen) { replace(whyAt, h("p", {}, "Select an atom.")); return; }
    if (!found) { replace(whyAt, h("h3", {}, chosen), h("p", {}, `Set ${truths[chosen] ? "true" : "false"} by hand: make it unknown to see what pushes it.`)); return; }
    const listed = (title, items, text) => {
      const known = items.filter((one) => one.push !== null && Math.abs(one.push) > 1e-9).slice(0, 12);
      const most = Math.max(1e-12, ...known.map((one) => Math.abs(one.push)));
      return known.length ? [h("h3", {}, title), known.map((one) => weightBar(text(one), one.push, most))] : null;
    };
    replace(whyAt, h("h3", {}, `${found.atom}: ${percent(found.probability)}`), h("p", {}, badge(found.guarantee),
      found.log_odds === null ? " decided by a hard formula" : ` log-odds ${number(found.log_odds, 4)}`),
    listed("Log-odds that each formula adds", found.rules, (one) => one.formula),
    listed("Ground formulas, averaged over their other atoms", found.ground, (one) => `${one.atoms.join(", ")} (${one.formula})`));
  }

  const decode = button("Find the likeliest world", async () => {
    if (!world) return;
    decode.disabled = true;
    try {
      const found = await context.call("best", asked());
      if (left) return;
      best = found;
      replace(bestAt, h("div", { class: "said" }, decodingBadge(best), h("span", {}, `${best.method.replaceAll("_", " ")} in ${seconds(best.seconds)}`),
        best.score === null ? null : h("span", {}, `score ${number(best.score, 6)}`)),
      h("p", {}, best.n_true ? `${best.n_true} of ${world.n_atoms} atoms hold:` : "No open atom holds."),
      h("div", { class: "chips", id: "true-atoms" }, best.true.map((name) => h("span", {}, name))));
      showRules();
    } catch (error) { failed(error); }
    decode.disabled = false;
  }, { class: "primary", id: "decode" });

  const picker = h("label", { class: "file" }, h("span", {}, "Evidence from a file (.db)"), h("input", { type: "file", onchange: async ({ target }) => {
    if (!target.files[0]) return;
    evidence.value = await target.files[0].text();
    evidence.dispatchEvent(new Event("input"));
    ground();
  } }));
  const go = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey || event.target === query)) { event.preventDefault(); ground(); } };
  evidence.addEventListener("keydown", go);
  query.addEventListener("keydown", go);
  const soon = settled(() => ground(), 900);
  evidence.addEventListener("input", soon);
  replace(root, h("div", { class: "work turned" },
    h("div", { class: "side" }, panel("Evidence", field("Ground atoms that are true, !atoms that are not", evidence), picker, field("Query", query),
      h("div", { class: "buttons" }, button("Ground", () => { soon.cancel(); ground(); }, { class: "primary", id: "ground" })), told, code),
    panel("Atom", whyAt)),
    h("div", { class: "wide" },
      h("div", { class: "span" }, panel("Ground network", said, graphAt)),
      panel("Atoms", field("Search", search), atomsAt),
      panel("Likeliest world", decode, bestAt),
      h("div", { class: "span" }, panel("Formulas", rulesAt)))));
  ground();
  return () => { left = true; soon.cancel(); };
}
