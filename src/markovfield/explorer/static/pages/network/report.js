// A report as one static file: elements are made as elements, so names stay text here as well; nothing is loaded.
import { h, number, percent, percentOfLog } from "../../dom.js";

const STYLE = `body{font:14px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#1b2430;background:#fff}
h1,h2,td,th,li{overflow-wrap:anywhere}h2{margin-top:1.6em;border-bottom:1px solid #d5dbe3}
table{border-collapse:collapse}td,th{border-bottom:1px solid #d5dbe3;padding:3px 10px;text-align:left;vertical-align:top}
td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}tr.seen td{background:#fbe6d4}
td.bar{width:180px;vertical-align:middle}td.bar div{height:5px;background:#4c8ad0}td.bar div.before{background:#a9b6c6}
pre{background:#eef1f5;padding:10px;overflow:auto}svg{max-width:100%;height:auto}.soft{color:#56616f}
@media print{h2{break-after:avoid}tr{break-inside:avoid}}`;

function escaped(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

const row = (label, ...said) => h("tr", {}, h("th", {}, label), h("td", {}, said));

// A style attribute would be forbidden in the page; in the file it is what draws the bars.
const bar = (kind, p) => h("div", { class: kind, style: { width: `${(100 * (p ?? 0)).toFixed(1)}%` } });

function probabilities(store) {
  const head = ["variable", "state", "before", "now", "before and now", "digits"];
  const rows = store.model.variables.flatMap(({ name, states }, v) => {
    const now = store.now(v), before = store.before(v);
    return states.map((state, k) => h("tr", { class: store.evidence.states[v] === k || store.evidence.do[v] === k ? "seen" : null },
      k ? null : h("td", { rowspan: states.length }, name), h("td", {}, state), h("td", { class: "n" }, percent(before?.[k])),
      h("td", { class: "n" }, percent(now[k])), h("td", { class: "bar" }, bar("before", before?.[k]), bar("now", now[k])),
      h("td", { class: "n" }, number(now[k], 10))));
  });
  return h("table", {}, h("tr", {}, head.map((x) => h("th", {}, x))), rows);
}

function evidence(store) {
  const { answer } = store;
  const seen = [...Object.entries(store.evidence.do).map(([v, k]) => `do(${store.name(v)} = ${store.states(v)[k]})`),
    ...Object.entries(store.evidence.states).map(([v, k]) => `${store.name(v)} = ${store.states(v)[k]}`),
    ...Object.entries(store.evidence.likelihoods).map(([v, x]) => `${store.name(v)}: likelihoods `
      + x.map((p, k) => `${store.states(v)[k]} ${number(p, 3)}`).join(", "))];
  return [seen.length ? h("ul", {}, seen.map((line) => h("li", {}, line))) : h("p", {}, "None."),
    answer.log_evidence === undefined ? null : h("p", {}, `P(evidence) = ${percentOfLog(answer.log_evidence)}, its logarithm ${number(answer.log_evidence, 6)}`,
      answer.conflict === undefined || answer.conflict === null ? "" : `; conflict ${number(answer.conflict, 3)} bits (above zero: the pieces speak against each other)`, ".")];
}

function answerOf(store, plan) {
  const { answer } = store;
  const [low, high] = answer.bounds;
  return [h("table", {}, row("method", answer.method.replaceAll("_", " ")),
    row("guarantee", answer.guarantee, answer.converged ? "" : ", not converged"),
    row("log Z", answer.log_partition === null ? "not estimated" : number(answer.log_partition, 10), answer.error ? ` ± ${number(answer.error, 2)}` : ""),
    row("bounds of log Z", `${low === null ? "−∞" : number(low, 10)} to ${high === null ? "∞" : number(high, 10)}`),
    answer.standard_errors ? row("largest standard error", number(Math.max(...answer.standard_errors), 3)) : null,
    row("computed in", `${number(answer.seconds, 3)} s`), answer.doubts.map((sentence) => row("doubt", sentence))),
  h("h3", {}, "What mf.marginals(...) would do"), h("table", {}, plan.rows.map(([label, said]) => row(label, said)))];
}

export function reportPage(store, drawing, { code, best, plan }) {
  const { name, library } = store.context.subject;
  const { variables, edges, directed } = store.model;
  const first = best?.solutions[0];
  const body = h("body", {}, h("h1", {}, name),
    h("p", { class: "soft" }, `${variables.length} variables, ${edges.length} ${directed ? "arcs" : "edges"}. Written by Markovfield ${library} on ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC.`),
    h("h2", {}, "Evidence"), evidence(store), h("h2", {}, "Answer"), answerOf(store, plan),
    h("h2", {}, "Network"), drawing, h("h2", {}, "Probabilities"), probabilities(store),
    first ? [h("h2", {}, "Likeliest assignment"),
      h("p", {}, `Score ${number(first.score, 8)}${best.optimal ? ", proven best" : ""}`, first.log_probability === null ? "." : `; probability ${percentOfLog(first.log_probability)}.`),
      h("table", {}, first.states.map((k, v) => h("tr", {}, h("td", {}, store.name(v)), h("td", {}, store.states(v)[k]))))] : null,
    h("h2", {}, "As code"), h("pre", {}, code));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(name)}</title><style>${STYLE}</style></head>
${body.outerHTML}</html>
`;
}
