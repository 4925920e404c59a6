// Pictures and a report to take along.
import { download, h, percent, number } from "../../dom.js";
import { pngOf, standalone as alone, stem as stemOf, textOf } from "../shared/take.js";

// The drawing by itself: all of it, wherever it was moved.
export function standalone(graph) {
  const [width, height] = graph.size;
  const copy = alone(graph.svg, [-12, -12, width + 24, height + 24]);
  copy.lastElementChild.removeAttribute("transform");
  return copy;
}

const text = (graph) => textOf(standalone(graph));
const stem = (store) => stemOf(store.context.subject);

export const saveSvg = (store, graph) => download(`${stem(store)}.svg`, "image/svg+xml", text(graph));

export const savePng = async (store, graph) => download(`${stem(store)}.png`, "image/png", await pngOf(text(graph)));

export async function savePdf(store) {
  const { pdf } = await store.call("picture", store.asked());
  download(`${stem(store)}.pdf`, "application/pdf", new Blob([Uint8Array.from(atob(pdf), (c) => c.charCodeAt(0))], { type: "application/pdf" }));
}

export async function saveCode(store) {
  const { code } = await store.call("code", store.asked({ target: store.selected ?? undefined }));
  download(`${stem(store)}.py`, "text/x-python", code);
}

const STYLE = `body{font:14px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#1b2430}
table{border-collapse:collapse}td,th{border-bottom:1px solid #d5dbe3;padding:3px 10px;text-align:left;vertical-align:top}
td.bar{width:160px}td.bar div{background:#4c8ad0;height:9px}pre{background:#eef1f5;padding:10px;overflow:auto}svg{max-width:100%;height:auto}`;

// One static file: elements are made as elements, so names stay text here as well.
export async function saveReport(store, graph) {
  const { answer } = store;
  const [{ code }, best, plan] = await Promise.all([store.call("code", store.asked()),
    store.call("best", store.asked()).catch(() => null), store.call("plan", store.asked())]);
  const page = document.implementation.createHTMLDocument(store.context.subject.name);
  const policy = h("meta", { "http-equiv": "Content-Security-Policy", content: "default-src 'none'; style-src 'unsafe-inline'; img-src data:" });
  page.head.append(h("meta", { charset: "utf-8" }), policy, h("style", {}, STYLE));
  const rows = store.model.variables.flatMap(({ name, states }, v) => {
    const now = store.now(v), before = store.before(v);
    return states.map((state, k) => h("tr", {}, k ? null : h("td", { rowspan: states.length }, name), h("td", {}, state), h("td", {}, percent(before?.[k])),
      h("td", {}, percent(now[k])), h("td", {}, number(now[k], 6))));
  });
  const seen = [...Object.entries(store.evidence.do).map(([v, k]) => `do(${store.name(v)} = ${store.states(v)[k]})`),
    ...Object.entries(store.evidence.states).map(([v, k]) => `${store.name(v)} = ${store.states(v)[k]}`),
    ...Object.entries(store.evidence.likelihoods).map(([v, x]) => `${store.name(v)} ~ [${x.join(", ")}]`)];
  page.body.append(h("h1", {}, store.context.subject.name),
    h("p", {}, `${store.model.variables.length} variables, ${store.model.edges.length} ${store.model.directed ? "arcs" : "edges"}. Written by Markovfield ${store.context.subject.library} on ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC.`),
    h("h2", {}, "Evidence"), seen.length ? h("ul", {}, seen.map((line) => h("li", {}, line))) : h("p", {}, "None."),
    answer.log_evidence === undefined ? "" : h("p", {}, `log P(evidence) = ${number(answer.log_evidence, 6)}`),
    h("h2", {}, "Answer"), h("table", {}, plan.rows.map(([label, said]) => h("tr", {}, h("th", {}, label), h("td", {}, said)))),
    h("p", {}, `By ${answer.method}: ${answer.guarantee}, in ${number(answer.seconds, 3)} s.`),
    h("h2", {}, "Network"), standalone(graph),
    h("h2", {}, "Probabilities"), h("table", {}, h("tr", {}, ["variable", "state", "before", "after", ""].map((x) => h("th", {}, x))), rows),
    ...(best ? [h("h2", {}, "Likeliest assignment"), h("p", {}, `Score ${number(best.solutions[0].score, 8)}${best.optimal ? ", proven best" : ""}.`),
      h("table", {}, best.solutions[0].states.map((k, v) => h("tr", {}, h("td", {}, store.name(v)), h("td", {}, store.states(v)[k]))))] : []),
    h("h2", {}, "As code"), h("pre", {}, code));
  download(`${stem(store)}.html`, "text/html", `<!doctype html>\n${page.documentElement.outerHTML}`);
}
