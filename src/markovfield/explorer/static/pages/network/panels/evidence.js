// All evidence, how probable it is, whether its pieces agree, and the same as code.
import { h, number, percentOfLog, replace } from "../../../dom.js";
import { action, variableLink } from "../parts.js";

export const title = "Evidence";

export function mount(root, store) {
  const code = h("pre", { class: "code", tabindex: "0", "aria-label": "Evidence as code" });

  async function show() {
    const { states, likelihoods } = store.evidence;
    const line = (v, text) => h("li", {}, variableLink(store, Number(v)), h("span", {}, text),
      action("×", () => store.forget(Number(v)), { class: "small", "aria-label": `Forget ${store.name(v)}` }));
    const { answer } = store;
    const conflict = answer?.conflict;
    const about = answer?.guarantee === "exact" ? "" : "about ";
    replace(root,
      store.pieces ? h("ul", { class: "pieces" },
        Object.entries(store.evidence.do).map(([v, k]) => line(v, `:= ${store.states(v)[k]}`)),
        Object.entries(states).map(([v, k]) => line(v, `= ${store.states(v)[k]}`)),
        Object.entries(likelihoods).map(([v, x]) => line(v, `~ [${x.map((p) => number(p, 2)).join(", ")}]`)))
        : h("p", { class: "hint" }, "Nothing is observed. Click a state of a variable."),
      answer?.log_evidence === null ? h("p", { class: "hint" }, `${answer.method.replaceAll("_", " ")} does not tell how probable the evidence is.`)
        : answer?.log_evidence !== undefined ? h("dl", { class: "facts" },
        h("dt", {}, "log P(evidence)"), h("dd", {}, about, number(answer.log_evidence, 5)),
        h("dt", {}, "P(evidence)"), h("dd", {}, about, percentOfLog(answer.log_evidence)),
        conflict !== undefined && conflict !== null ? [h("dt", {}, "conflict"), h("dd", {},
          `${number(conflict, 3)} bits`, h("span", { class: conflict > 0 ? "badge bad" : "badge good" },
            conflict > 0 ? "the pieces speak against each other" : "the pieces agree"))] : null) : null,
      h("div", { class: "line" },
        action("Clear all", () => store.clear(), { disabled: !store.pieces }),
        action("Undo", () => store.undo(), { disabled: !store.past.length })),
      h("h4", {}, "As code"), code,
      action("Copy", async () => {
        try {
          await navigator.clipboard.writeText(code.textContent);
          store.context.tell("The code is in the clipboard.");
        } catch { store.context.tell("The browser does not give the clipboard away: select the text.", "error"); }
      }));
    try {
      const target = store.selected === null ? undefined : store.selected;
      code.textContent = (await store.call("code", store.asked({ method: store.method, target }))).code;
    } catch (error) { code.textContent = `# ${error.message}`; }
  }

  const off = [store.on("answer", show), store.on("select", show)];
  show();
  return () => off.forEach((f) => f());
}
