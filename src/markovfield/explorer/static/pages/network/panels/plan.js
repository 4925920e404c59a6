// What answers, how well, at what cost; and the choice of another method.
import { h, number, replace } from "../../../dom.js";
import { choice, duration, field } from "../parts.js";

export const title = "Plan";

export function mount(root, store) {
  let verb = "marginals";
  const table = h("div");

  async function show() {
    const { answer } = store;
    const bounds = answer?.bounds ?? [null, null];
    replace(root,
      h("div", { class: "line" },
        field("Method", choice("Method", store.model.methods.map((m) => [m, m]), store.method, (m) => store.choose(m))),
        field("Verb", choice("Verb", ["marginals", "decode", "sample", "log_partition"].map((x) => [x, x]), verb, (x) => { verb = x; show(); }))),
      answer ? [h("h4", {}, "This answer"), h("dl", { class: "facts" },
        h("dt", {}, "method"), h("dd", {}, answer.method),
        h("dt", {}, "guarantee"), h("dd", {}, answer.guarantee, answer.converged ? "" : ", not converged"),
        h("dt", {}, "log Z"), h("dd", {}, answer.log_partition === null ? "not estimated" : number(answer.log_partition, 8), answer.error ? ` ± ${number(answer.error, 2)}` : ""),
        h("dt", {}, "bounds"), h("dd", {}, `${bounds[0] === null ? "−∞" : number(bounds[0], 8)} to ${bounds[1] === null ? "∞" : number(bounds[1], 8)}`),
        answer.width >= 0 ? [h("dt", {}, "width"), h("dd", {}, answer.width)] : null,
        answer.standard_errors ? [h("dt", {}, "largest standard error"), h("dd", {}, number(Math.max(...answer.standard_errors), 2))] : null,
        answer.doubts.length ? [h("dt", {}, "doubts"), h("dd", {}, answer.doubts.join(" "))] : null,
        h("dt", {}, "computed in"), h("dd", {}, duration(answer.seconds)),
        h("dt", {}, "click to here"), h("dd", {}, duration(answer.milliseconds / 1000)))] : null,
      h("h4", {}, `What mf.${verb}(...) would do, told before it starts`), table);
    try {
      const { rows } = await store.call("plan", store.asked({ verb, method: store.method }));
      replace(table, h("dl", { class: "facts" }, rows.map(([label, text]) => [h("dt", {}, label), h("dd", {}, text)])));
    } catch (error) { replace(table, h("p", { class: "problem", role: "alert" }, error.message)); }
  }

  const off = store.on("answer", show);
  show();
  return off;
}
