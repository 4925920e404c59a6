// Pictures, code and a report to take along.
import { download } from "../../dom.js";
import { pngOf, standalone as alone, stem as stemOf, textOf } from "../shared/take.js";
import { reportPage } from "./report.js";

// The drawing by itself: all of it, wherever it was moved.
export function standalone(graph) {
  const [width, height] = graph.size;
  // As it is seen from near, whatever is left out from afar.
  graph.look(true);
  graph.svg.classList.remove("far");
  const copy = alone(graph.svg, [-12, -12, width + 24, height + 24]);
  graph.show();
  copy.lastElementChild.removeAttribute("transform");
  copy.querySelectorAll("[data-beyond]").forEach((badge) => badge.remove());
  if (graph.drawing.moral) copy.querySelectorAll("[marker-end]").forEach((line) => line.removeAttribute("marker-end"));
  return copy;
}

const text = (graph) => textOf(standalone(graph));
const stem = (store) => stemOf(store.context.subject);

export const saveSvg = (store, graph) => download(`${stem(store)}.svg`, "image/svg+xml", text(graph));

export const savePng = async (store, graph) => download(`${stem(store)}.png`, "image/png", await pngOf(text(graph)));

export async function savePdf(store) {
  const { pdf } = await store.call("picture", store.asked({ method: store.method }));
  download(`${stem(store)}.pdf`, "application/pdf", new Blob([Uint8Array.from(atob(pdf), (c) => c.charCodeAt(0))], { type: "application/pdf" }));
}

export async function saveCode(store) {
  const { code } = await store.call("code", store.asked({ method: store.method, target: store.selected ?? undefined }));
  download(`${stem(store)}.py`, "text/x-python", code);
}

export async function saveReport(store, graph) {
  const [{ code }, best, plan] = await Promise.all([store.call("code", store.asked({ method: store.method })),
    store.call("best", store.asked()).catch(() => null), store.call("plan", store.asked())]);
  // On paper the ground is light.
  const { dataset } = document.documentElement, { theme } = dataset;
  dataset.theme = "light";
  try {
    download(`${stem(store)}.html`, "text/html", reportPage(store, standalone(graph), { code, best, plan }));
  } finally { dataset.theme = theme; }
}
