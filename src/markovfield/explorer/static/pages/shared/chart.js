// A small chart of curves and dots, as SVG.
import { number, svg } from "../../dom.js";

const WIDE = 360, HIGH = 200, LEFT = 52, BELOW = 30, TOP = 10, RIGHT = 10;

function ticks(low, high, count) {
  const step = 10 ** Math.floor(Math.log10((high - low) / count));
  const nice = [1, 2, 5, 10].map((x) => x * step).find((x) => (high - low) / x <= count) ?? 10 * step;
  const found = [];
  for (let k = Math.ceil(low / nice); k * nice <= high + 1e-9 * nice; k++) found.push(k * nice);
  return found;
}

function range(values, least) {
  let low = Infinity, high = -Infinity;
  for (const x of values) if (Number.isFinite(x)) { low = Math.min(low, x); high = Math.max(high, x); }
  if (!(low <= high)) return [0, 1];
  const room = Math.max((high - low) * 0.06, least ?? 1e-9 * Math.max(1, Math.abs(high)), 1e-12);
  return [low - room, high + room];
}

// lines: [{points: [[x, y], ...], kind}], dots: [{x, y, error, kind}], x and y: {label, range}.
export function chart(title, { lines = [], dots = [], x, y, marks = [] }) {
  const points = [...lines.flatMap((line) => line.points), ...dots.map((dot) => [dot.x, dot.y])];
  const [x0, x1] = x.range ?? range(points.map((p) => p[0]));
  const [y0, y1] = y.range ?? range(points.map((p) => p[1]));
  const at = (u) => LEFT + ((u - x0) / (x1 - x0)) * (WIDE - LEFT - RIGHT);
  const up = (v) => HIGH - BELOW - ((v - y0) / (y1 - y0)) * (HIGH - BELOW - TOP);
  const inside = (p) => Number.isFinite(p[0]) && Number.isFinite(p[1]);
  const axis = [
    ...ticks(x0, x1, 6).map((u) => [
      svg("line", { class: "tick", x1: at(u), x2: at(u), y1: TOP, y2: HIGH - BELOW }),
      svg("text", { class: "number", x: at(u), y: HIGH - BELOW + 13, "text-anchor": "middle" }, number(u, 5)),
    ]),
    ...ticks(y0, y1, 5).map((v) => [
      svg("line", { class: "tick", x1: LEFT, x2: WIDE - RIGHT, y1: up(v), y2: up(v) }),
      svg("text", { class: "number", x: LEFT - 5, y: up(v) + 3.5, "text-anchor": "end" }, number(v, 5)),
    ]),
  ];
  const clip = (v) => Math.max(-1e4, Math.min(1e4, v));
  const drawn = lines.map((line) => svg("polyline", { class: `curve ${line.kind}`,
    points: line.points.filter(inside).map((p) => `${clip(at(p[0])).toFixed(1)},${clip(up(p[1])).toFixed(1)}`).join(" ") }));
  const marked = marks.map((mark) => svg("line", { class: "mark", x1: at(mark), x2: at(mark), y1: TOP, y2: HIGH - BELOW }));
  const dotted = dots.filter((dot) => inside([dot.x, dot.y])).map((dot) => [
    dot.error && svg("line", { class: `error ${dot.kind}`, x1: at(dot.x), x2: at(dot.x),
      y1: clip(up(dot.y - dot.error)), y2: clip(up(dot.y + dot.error)) }),
    svg("circle", { class: `dot ${dot.kind}`, cx: at(dot.x), cy: clip(up(dot.y)), r: dot.kind === "now" ? 4.5 : 3 }),
  ]);
  return svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": title },
    axis, marked, drawn, dotted,
    svg("text", { class: "label", x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 3, "text-anchor": "middle" }, x.label),
    svg("text", { class: "label", x: 11, y: (TOP + HIGH - BELOW) / 2, "text-anchor": "middle",
      transform: `rotate(-90 11 ${(TOP + HIGH - BELOW) / 2})` }, y.label));
}
