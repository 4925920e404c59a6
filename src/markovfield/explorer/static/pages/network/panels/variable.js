// The selected variable: states to click, likelihoods, interventions, contributions of evidence.
import { h, number, percent, replace } from "../../../dom.js";
import { action, asking, barRow, choice, promise, signedRow, variableLink } from "../parts.js";

export const title = "Variable";

export function mount(root, store, graph) {
  let target = 0;

  function likelihoods(v) {
    const states = store.states(v);
    const start = store.evidence.likelihoods[v] ?? states.map(() => 1);
    const sliders = states.map((state, k) => {
      const shown = h("output", {}, number(start[k], 2));
      const moved = (going) => () => {
        shown.textContent = number(Number(slider.value), 2);
        store.likelihood(v, sliders.map(({ slider: s }) => Number(s.value)), going);
      };
      const slider = h("input", { type: "range", min: "0", max: "1", step: "0.01", value: start[k], "aria-label": `Likelihood of ${state}`,
        "data-likelihood": k, oninput: moved(true), onchange: moved(false) });
      return { slider, line: h("label", { class: "slide" }, h("span", { class: "label", title: state }, state), slider, shown) };
    });
    return h("details", { open: v in store.evidence.likelihoods, class: "fold" },
      h("summary", {}, "Likelihoods (uncertain evidence)"),
      h("p", { class: "hint" }, "How likely each state makes what was seen; only the ratios count."),
      sliders.map(({ line }) => line));
  }

  function contributions(v) {
    const place = h("div");
    const states = store.states(v);
    const pick = choice("State", states.map((s, k) => [k, s]), target, (k) => { target = Number(k); });
    const work = async (signal) => {
      const found = await store.call("contributions", store.asked({ target: v, state: target, method: store.method }), signal);
      const most = Math.max(...found.rows.map((row) => Math.abs(row.given_others ?? 0)), 1e-9);
      if (!found.rows.length) return h("p", { class: "hint" }, "There is no evidence on other variables yet.");
      return [
        promise(found),
        h("p", {}, `P(${store.name(v)} = ${states[target]}): ${percent(found.before)} before, ${percent(found.after)} now.`),
        h("p", { class: "hint" }, "Change of the log-odds by each piece, given all others (and by itself), in nats:"),
        found.rows.map((row) => {
          const text = row.given_others === null ? "decides" : `${row.given_others > 0 ? "+" : ""}${number(row.given_others, 3)}`;
          const alone = row.by_itself === null ? "" : ` (${row.by_itself > 0 ? "+" : ""}${number(row.by_itself, 2)})`;
          return signedRow(variableLink(store, row.variable), row.given_others ?? most, most, text + alone,
            `without it ${percent(row.without)}, by itself ${percent(row.alone)}`);
        }),
      ];
    };
    return h("details", { class: "fold", open: false }, h("summary", {}, "Why? What each piece of evidence adds"),
      h("div", { class: "line" }, pick, asking("Explain", place, work, { "data-do": "contributions" }, store)), place);
  }

  function show() {
    const v = store.selected;
    if (v === null) {
      replace(root, h("p", { class: "hint" }, "Select a variable in the graph or in the list. Click a state to observe it; "
        + "with the keyboard, arrow keys move between variables and the digits 1 to 9 set a state."));
      return;
    }
    const now = store.now(v), before = store.before(v), errors = store.errors(v);
    const states = store.states(v);
    if (target >= states.length) target = 0;
    const seen = store.evidence.states[v], set = store.evidence.do[v];
    const bars = states.map((state, k) => barRow(state, before?.[k], now?.[k] ?? 0, {
      class: k === seen ? "on" : k === set ? "on done" : "", onclick: () => store.toggle(v, k), "aria-pressed": String(k === seen || k === set), "data-state": k,
      error: errors?.[k] }));
    const doing = choice("do", [["", "no intervention"], ...states.map((s, k) => [k, `set to ${s}`])], set ?? "",
      (k) => (k === "" ? store.forget(v) : store.intervene(v, Number(k))));
    replace(root,
      h("h3", { class: "title" }, store.name(v)),
      h("p", { class: "hint" }, set !== undefined ? "Set by intervention." : seen !== undefined ? "Observed."
        : store.pieces ? "Click a state to observe it. The bar is the probability now, the pale one behind it before any evidence."
          : "Click a state to observe it."),
      h("div", { class: "bars", role: "group", "aria-label": "States" }, bars),
      h("div", { class: "line" },
        action("Forget", () => store.forget(v), { "data-do": "forget", disabled: !store.isSeen(v) && set === undefined }),
        action("Centre", () => { const parts = graph.nodes.get(v); if (parts) graph.centre(parts.at); }),
        action("Markov blanket", async () => {
          const { blanket, parents, children, spouses } = await store.call("blanket", store.asked({ variable: v }));
          graph.mark({ dim: true, nodes: { "set-a": [v], near: blanket } });
          const say = (word, those) => (those.length ? `${word} ${those.map((u) => store.name(u)).join(", ")}` : null);
          store.context.tell(`Markov blanket of ${store.name(v)}: `
            + ([say("parents", parents), say("children", children), say("spouses", spouses)].filter(Boolean).join("; ")
            || blanket.map((u) => store.name(u)).join(", ") || "nothing"));
        })),
      store.model.causal ? h("label", { class: "field" }, h("span", {}, "What if: do(...)"), doing) : null,
      // Of what is set by intervention they would say nothing.
      set === undefined ? likelihoods(v) : null, contributions(v));
  }

  // What is made anew keeps the keyboard, and what was unfolded stays so.
  function showAgain() {
    const focused = root.contains(document.activeElement) ? document.activeElement : null;
    const again = focused?.dataset.state !== undefined ? `.bar-row[data-state="${focused.dataset.state}"]`
      : focused?.dataset.do ? `[data-do="${focused.dataset.do}"]` : null;
    const open = [...root.querySelectorAll("details")].map((part) => part.open);
    show();
    [...root.querySelectorAll("details")].forEach((part, i) => { part.open ||= Boolean(open[i]); });
    if (again) root.querySelector(again)?.focus();
  }

  const off = [store.on("select", show), store.on("answer", () => {
    // A slider that is being moved stays where it is.
    if (root.contains(document.activeElement) && document.activeElement.type === "range") refreshBars();
    else showAgain();
  })];

  function refreshBars() {
    const v = store.selected;
    const now = store.now(v);
    root.querySelectorAll(".bars .bar-row").forEach((row, k) => {
      row.querySelector(".after").style.width = `${100 * now[k]}%`;
      const told = row.querySelector(".number");
      told.textContent = percent(now[k]);
      told.title = number(now[k], 12);
      row.querySelector(".error")?.remove();
      row.classList.toggle("on", store.evidence.states[v] === k);
      row.setAttribute("aria-pressed", String(store.evidence.states[v] === k));
    });
    root.querySelector("[data-do=forget]").disabled = !store.isSeen(v) && !(v in store.evidence.do);
  }

  show();
  return () => off.forEach((f) => f());
}
