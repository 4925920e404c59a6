// Sentences and what a grammar, a parser or an aligner makes of them.
import { h, number, percent, replace, styles } from "../dom.js";
import { badge, button, field, latest, panel, remembered, settled, useStyle } from "./shared/controls.js";
import { heat } from "./shared/heat.js";
import { codeFold, drawing } from "./shared/take.js";
import { arcsDrawing, chartDrawing, treeDrawing } from "./parses/drawings.js";

const READS = {
  words: "Words with blanks between them",
  tagged: "Words with their tags, such as the/DT dog/NN",
  pair: "Two sentences that say the same",
};

export async function mount(root, context) {
  await useStyle();
  await styles("pages/parses.css");
  const about = await context.call("about");
  let found = null, way = 0, left = false;
  const said = h("div", { class: "said", role: "status", "aria-live": "polite" });
  const main = h("div", {}), ways = h("div", {}), second = h("div", {});
  const area = (key, rows) => remembered(`parses-${key}`, h("textarea", { rows, spellcheck: "false", name: key }));
  const text = area("text", about.reads === "pair" ? 3 : 4), other = area("other", 3);
  const count = h("input", { type: "number", min: 1, max: 10, value: 3 });
  const asked = () => ({ text: text.value, other: other.value, n_best: Math.max(1, Math.min(10, Number(count.value) || 1)) });
  const code = codeFold(context, () => context.call("code", asked()));

  const ask = latest(async () => {
    if (!text.value.trim() || (about.reads === "pair" && !other.value.trim())) { found = null; show(); return; }
    try {
      const answer = await context.call("ask", asked());
      if (left) return;
      found = answer;
      way = 0;
      context.calm();
      show();
      code.refresh();
    } catch (error) { if (!left) context.tell(error.message, "error"); }
  });
  // A sentence that is half written has no tree: nothing is asked while it is, but after a pause.
  const soon = settled(ask, 600);
  for (const input of [text, other]) {
    input.addEventListener("input", soon);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); soon.cancel(); ask(); }
    });
  }
  count.addEventListener("change", () => ask());

  function show() {
    root.dataset.answers = Number(root.dataset.answers ?? 0) + 1;
    if (!found) {
      replace(main, h("p", {}, `${READS[about.reads]}: write above or paste, then press Enter.`));
      for (const place of [said, ways, second]) replace(place);
      return;
    }
    replace(said, badge(found.guarantee),
      found.joined ? "the geometric mean of two directions, no posterior of one model" : null,
      found.log_partition === null ? null : h("span", {}, `log Z ${number(found.log_partition, 6)}`),
      found.best ? h("span", {}, `best ${about.task === "arcs" ? "arcs" : "tree"} ${percent(found.best[0].probability)}`) : h("span", {}, `${found.links.length} links`));
    ({ tree: showTree, arcs: showArcs, alignment: showLinks })[about.task]();
  }

  function listWays() {
    replace(ways, h("ol", { class: "ways" }, found.best.map((one, k) => h("li", {}, button(
      `${k + 1}. ${percent(one.probability)}  ${one.text}`, () => { way = k; show(); ways.querySelectorAll("button")[k].focus(); },
      { "aria-pressed": k === way })))));
  }

  function showTree() {
    const { tree } = found.best[way];
    replace(main, drawing(context, "tree", treeDrawing(tree, found.words, found.spans)));
    replace(second, drawing(context, "chart", chartDrawing(found.words, found.spans, tree)),
      h("p", {}, "A cell stands over its run of words; its colour is the probability that the run is a constituent, with its likeliest label. Bordered: in the tree shown."));
    listWays();
  }

  function showArcs() {
    const { arcs } = found.best[way];
    replace(main, drawing(context, "arcs", arcsDrawing(found.words, found.tags, arcs, found.probabilities)),
      h("p", {}, "Dashed: what else is likely, from 10% on."));
    const values = found.probabilities.map((line) => line.slice(1));
    replace(second, drawing(context, "heads", heat("How likely each word is the head of another", { rows: ["root", ...found.words], columns: found.words, values,
      dots: arcs.map(([head], m) => [head, m]), rowTitle: "head", columnTitle: "word" })));
    listWays();
  }

  function showLinks() {
    const dots = found.links.map(([i, j]) => [i, j]);
    replace(main, drawing(context, "links", heat("How likely words are linked", { rows: found.source, columns: found.target, values: found.probabilities, dots })),
      h("p", {}, "Bordered: the links that are found."));
    replace(second, h("div", { class: "scroll" }, h("table", { class: "table links" }, h("thead", {}, h("tr", {}, ["source", "target", "probability"].map((t) => h("th", { class: "text" }, t)))),
      h("tbody", {}, found.links.map(([i, j, p]) => h("tr", {}, h("td", {}, found.source[i]), h("td", {}, found.target[j]), h("td", {}, percent(p))))))));
  }

  const titles = { tree: ["Tree", "Chart of spans"], arcs: ["Arcs", "Probabilities of arcs"], alignment: ["Links", "Links found"] }[about.task];
  const labels = about.labels.length ? ` ${about.labels.length} labels: ${about.labels.slice(0, 12).join(", ")}${about.labels.length > 12 ? ", ..." : ""}` : "";
  replace(root, h("div", { class: "work" },
    h("div", { class: "side" }, panel("Sentence", field(about.reads === "pair" ? "Source sentence" : READS[about.reads], text),
      about.reads === "pair" ? field("Target sentence", other) : field("n best", count),
      h("div", { class: "buttons" }, button(about.reads === "pair" ? "Align" : "Parse", () => ask(), { class: "primary", id: "parse" })),
      h("p", {}, `${about.kind}.${labels}`), code)),
    h("div", { class: "wide" }, h("div", { class: "span" }, panel(titles[0], said, main)),
      h("div", { class: "span" }, panel(titles[1], second)),
      about.task === "alignment" ? null : h("div", { class: "span" }, panel("Best ones", ways)))));
  show();
  if (text.value.trim()) ask();
  return () => { left = true; soon.cancel(); };
}
