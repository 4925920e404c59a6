// Drawings of sentences: a tree of constituents, a chart of spans, arcs between words.
import { percent, svg } from "../../dom.js";
import { INK } from "../shared/heat.js";

const LETTER = 7.6, LEVEL = 44, MARGIN = 14;
export const wordWidth = (word) => Math.max(34, String(word).length * LETTER + 14);

// Middles of words that stand beside each other, and the width of all.
function row(words, width = wordWidth) {
  const places = [];
  let at = MARGIN;
  for (const word of words) {
    const wide = width(word);
    places.push(at + wide / 2);
    at += wide;
  }
  return [places, at + MARGIN];
}

const sized = (width, height, title, ...content) => svg("svg", { viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
  width: Math.ceil(width), height: Math.ceil(height), role: "img", "aria-label": title }, content);

const shareOf = (spans, label, first, last) => {
  const span = spans.find((one) => one.first === first && one.last === last);
  return span?.labels.find(([name]) => name === label)?.[1] ?? null;
};

const depth = (node) => (typeof node === "string" ? 0 : 1 + Math.max(...node[1].map(depth)));

// node: [label, children, first word, word after the last].
export function treeDrawing(node, words, spans) {
  const [places, width] = row(words, (word) => wordWidth(word) + 14);
  const deep = depth(node), bottom = MARGIN + deep * LEVEL + 8;
  const lines = [], texts = [];
  let word = 0;
  // Gives where it stands; parents stand over the middle of their children, words at the bottom.
  function place(part) {
    if (typeof part === "string") {
      const x = places[word++];
      texts.push(svg("text", { class: "word", x, y: bottom, "text-anchor": "middle" }, part));
      return [x, bottom - 14];
    }
    const [label, children, first, last] = part;
    const y = MARGIN + (deep - depth(part)) * LEVEL + 8;
    const below = children.map(place);
    const x = (below[0][0] + below.at(-1)[0]) / 2;
    const share = shareOf(spans, label, first, last - 1);
    for (const [u, v] of below) {
      lines.push(svg("line", { class: "branch", x1: x, y1: y + 6, x2: u, y2: v, "stroke-opacity": share === null ? 0.7 : (0.25 + 0.75 * share).toFixed(2) }));
    }
    texts.push(svg("g", {}, svg("text", { class: "label", x, y, "text-anchor": "middle" }, label),
      share === null || share > 0.9995 ? null : svg("text", { class: "soft small", x: x + String(label).length * 4.4 + 3, y: y + 1 }, percent(share)),
      svg("title", {}, `${label}: ${words.slice(first, last).join(" ")}${share === null ? "" : `, ${percent(share)}`}`)));
    return [x, y - 12];
  }
  place(node);
  return sized(width, bottom + MARGIN, "The tree", lines, texts);
}

// A triangle of cells: the run from word i to word j stands over their middle, longer ones higher.
export function chartDrawing(words, spans, tree) {
  const n = words.length;
  const side = Math.max(26, Math.min(n > 14 ? 40 : 56, 860 / n));
  const high = side * 0.62, left = MARGIN + side / 2;
  const upright = words.some((word) => word.length * 6.6 > side - 4);
  const names = upright ? Math.min(90, Math.max(...words.map((word) => word.length)) * 5.2 + 14) : 24;
  const middle = (span) => [left + ((span.first + span.last) / 2) * side, MARGIN + (n - 1 - (span.last - span.first)) * high + high];
  const own = new Set();
  (function visit(node) {
    if (typeof node === "string") return;
    own.add(`${node[2]} ${node[3] - 1}`);
    node[1].forEach(visit);
  })(tree);
  const cells = spans.map((span) => {
    const [x, y] = middle(span);
    const label = span.labels[0]?.[0];
    const in_tree = own.has(`${span.first} ${span.last}`);
    return svg("g", {}, svg("path", { class: `span ${in_tree && span.probability > 0 ? "own" : ""}`,
      d: `M${x} ${y - high}L${x + side / 2} ${y}L${x} ${y + high}L${x - side / 2} ${y}Z`, "data-span": `${span.first} ${span.last}`,
      "data-share": span.probability.toFixed(6), fill: "var(--bar)", "fill-opacity": (INK * span.probability).toFixed(3) }),
    svg("title", {}, `${words.slice(span.first, span.last + 1).join(" ")}: ${percent(span.probability)}`
      + (span.labels.length ? ` (${span.labels.map(([name, p]) => `${name} ${percent(p)}`).join(", ")})` : "")),
    label && span.probability > 0.04 ? svg("text", { class: "small", x, y: y + (side >= 40 ? 0 : 3.5), "text-anchor": "middle", "pointer-events": "none" },
      label.length * 5.8 > side - 6 ? `${label.slice(0, Math.max(1, Math.floor((side - 10) / 5.8)))}…` : label) : null,
    side >= 40 && span.probability > 0.04 ? svg("text", { class: "small", x, y: y + 11, "text-anchor": "middle", "pointer-events": "none" }, percent(span.probability)) : null);
  });
  const bottom = MARGIN + n * high + high;
  return sized(left + (n - 0.5) * side + MARGIN, bottom + names, "How likely each run of words is a constituent", cells,
    words.map((word, i) => upright
      ? svg("text", { transform: `translate(${left + i * side + 4} ${bottom + 12}) rotate(-50)`, "text-anchor": "end" }, word)
      : svg("text", { x: left + i * side, y: bottom + 13, "text-anchor": "middle" }, word)));
}

// arcs: [head, label] for each word, 0 being the root; pale dashed ones are what else is likely.
export function arcsDrawing(words, tags, arcs, probabilities, least = 0.1) {
  const [places, width] = row(words, (word) => Math.max(78, wordWidth(word) + 16));
  const at = (word) => places[word - 1];
  const drawn = [];
  arcs.forEach(([head, label], m) => drawn.push({ head, to: m + 1, label, share: probabilities[head][m + 1], own: true }));
  probabilities.forEach((line, head) => line.forEach((share, to) => {
    if (to > 0 && share >= least && arcs[to - 1][0] !== head) drawn.push({ head, to, label: null, share, own: false });
  }));
  // An arc lies above those between its ends.
  const ends = (arc) => [Math.min(arc.head, arc.to), Math.max(arc.head, arc.to)];
  const low = drawn.filter((arc) => arc.head > 0).sort((a, b) => Math.abs(a.head - a.to) - Math.abs(b.head - b.to) || b.own - a.own);
  low.forEach((arc, k) => {
    const [a, b] = ends(arc);
    arc.level = 1 + Math.max(0, ...low.slice(0, k).filter((one) => { const [c, d] = ends(one); return c < b && d > a; }).map((one) => one.level));
  });
  const rise = (arc) => (arc.head === 0 ? 0 : 14 + 20 * arc.level);
  const top = Math.max(60, ...drawn.map(rise)) + 24, foot = top + 8;
  const shapes = drawn.map((arc) => {
    const title = svg("title", {}, `${words[arc.to - 1]} <- ${arc.head === 0 ? "root" : words[arc.head - 1]}${arc.label ? ` (${arc.label})` : ""}: ${percent(arc.share)}`);
    const opacity = (0.3 + 0.7 * arc.share).toFixed(2);
    const x = at(arc.to);
    const tip = svg("path", { class: `tip ${arc.own ? "" : "other"}`, d: `M${x - 4} ${foot - 7}L${x + 4} ${foot - 7}L${x} ${foot}Z`, "fill-opacity": opacity });
    const note = arc.own && arc.share < 0.9995 ? ` ${percent(arc.share)}` : arc.own ? "" : percent(arc.share);
    const kind = `arc ${arc.own ? "" : "other"}`;
    if (arc.head === 0) {
      return svg("g", { "data-arc": `0 ${arc.to}` }, title, svg("line", { class: kind, x1: x, x2: x, y1: 18, y2: foot - 6, "stroke-opacity": opacity }), tip,
        svg("text", { class: "small", x, y: 12, "text-anchor": "middle" }, `${arc.label ?? "root"}${note}`));
    }
    const from = at(arc.head) + (arc.to > arc.head ? 7 : -7), up = top - rise(arc);
    const bend = Math.min(26, Math.abs(x - from) / 3) * Math.sign(x - from);
    return svg("g", { "data-arc": `${arc.head} ${arc.to}` }, title,
      svg("path", { class: kind, d: `M${from} ${foot - 4}C${from} ${up},${from + bend} ${up},${(from + x) / 2} ${up}S${x} ${up},${x} ${foot - 6}`, "stroke-opacity": opacity }), tip,
      arc.own || note ? svg("text", { class: "small", x: (from + x) / 2, y: up - 4, "text-anchor": "middle" }, `${arc.label ?? ""}${note}`) : null);
  });
  return sized(width, foot + 44, "The arcs", shapes,
    words.map((word, i) => [svg("text", { class: "word", x: places[i], y: foot + 16, "text-anchor": "middle" }, word),
      svg("text", { class: "small soft", x: places[i], y: foot + 31, "text-anchor": "middle" }, tags[i])]));
}
