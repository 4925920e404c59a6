// A table of numbers as colours, with names beside rows and above columns.
import { number, percent, svg } from "../../dom.js";

// Numbers can be read on the darkest colour in both themes.
export const INK = 0.72;
const MOST_NUMBERS = 240, LETTER = 6.6;
const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// values[i][j]: a share of one, or with `signed` any number; null leaves a cell empty. `dots` are [i, j] that get a border.
export function heat(title, { rows, columns, values, signed = false, dots = [], rowTitle = "", columnTitle = "", cell = null }) {
  const finite = values.flat().filter((x) => x !== null);
  const most = signed ? Math.max(1e-12, ...finite.map(Math.abs)) : 1;
  const numbers = rows.length * columns.length <= MOST_NUMBERS;
  const wide = cell ?? (numbers ? 44 : Math.max(13, Math.min(26, 900 / columns.length)));
  const high = numbers ? 24 : Math.max(13, Math.min(22, wide));
  const names = columns.map((name) => clip(String(name), 18));
  const longest = Math.max(...names.map((name) => name.length), 1);
  const upright = longest * LETTER > wide - 4;
  const left = Math.min(150, Math.max(...rows.map((name) => String(name).length), 1) * 7.2) + 10 + (rowTitle ? 14 : 0);
  const top = (upright ? Math.max(24, longest * LETTER * 0.75 + 10) : 20) + (columnTitle ? 16 : 0);
  const slant = upright ? longest * LETTER * 0.72 : 0;
  const shown = (x) => (signed ? number(x, 2) : percent(x));
  const cells = values.flatMap((row, i) => row.map((x, j) => x === null ? null : [
    svg("rect", { class: "cell", x: left + j * wide, y: top + i * high, width: wide, height: high,
      fill: x < 0 ? "var(--bad)" : "var(--bar)", "fill-opacity": (INK * Math.abs(x) / most).toFixed(3), "data-row": i, "data-column": j },
    svg("title", {}, `${rows[i]}, ${columns[j]}: ${signed ? number(x, 5) : percent(x)}`)),
    numbers && (signed ? Math.abs(x) > 0.005 * most : x > 0.001) ? svg("text", { class: "small", x: left + (j + 0.5) * wide, y: top + (i + 0.5) * high + 4,
      "text-anchor": "middle", "pointer-events": "none" }, shown(x)) : null,
  ]));
  const width = left + columns.length * wide + slant + 6, height = top + rows.length * high + 6;
  return svg("svg", { viewBox: `0 0 ${width.toFixed(0)} ${height.toFixed(0)}`, width: width.toFixed(0), height: height.toFixed(0),
    role: "img", "aria-label": title, class: "heat" },
    svg("rect", { class: "ground", x: left, y: top, width: columns.length * wide, height: rows.length * high }), cells,
    dots.map(([i, j]) => svg("rect", { class: "dot", x: left + j * wide + 1, y: top + i * high + 1, width: wide - 2, height: high - 2, rx: 3 })),
    rows.map((name, i) => svg("text", { x: left - 6, y: top + (i + 0.5) * high + 4, "text-anchor": "end" }, clip(String(name), 20), svg("title", {}, name))),
    names.map((name, j) => upright
      ? svg("text", { transform: `translate(${left + (j + 0.5) * wide + 2} ${top - 5}) rotate(-46)` }, name, svg("title", {}, columns[j]))
      : svg("text", { x: left + (j + 0.5) * wide, y: top - 6, "text-anchor": "middle" }, name)),
    columnTitle && svg("text", { class: "soft", x: left, y: 12 }, columnTitle),
    rowTitle && svg("text", { class: "soft", "text-anchor": "end", transform: `translate(11 ${top}) rotate(-90)` }, rowTitle));
}
