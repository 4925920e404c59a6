// The network as it is drawn: nodes with bars, edges, marks.
import { svg, percent, replace } from "../../dom.js";
import { border, Canvas, path } from "./canvas.js";

const LINE = 28, BAR = 18, MOST_BARS = 8, MOST_LETTERS = 24;
// Of a drawing of more nodes, those out of sight are taken out, so that a click or a turn of the wheel stays quick.
const MOST_KEPT = 120;
// Magnified less than this, rows and letters are dots: a bar of the whole node stands for them.
const TINY = 0.2;
// Sizes of the letters of names in pixels, as the style sheet has them.
const NEAR = 13, FAR = 20;
const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

const marker = (id, kind) => svg("marker", { id, class: kind, viewBox: "0 0 10 10", refX: "9.5", refY: "5",
  markerWidth: "7", markerHeight: "7", orient: "auto-start-reverse" }, svg("path", { d: "M0 1 10 5 0 9z" }));

export class Graph extends Canvas {
  constructor(store) {
    super("Network; arrow keys move between variables, digits set evidence");
    this.store = store;
    this.nodes = new Map();
    this.backwards = [];
    this.edges = new Map();
    this.marks = {};
    replace(this.defs, marker("arrow", "plain"), marker("arrow-hot", "hot"));
    this.content.addEventListener("click", (event) => this.clicked(event));
    this.content.addEventListener("keydown", (event) => this.nodeKey(event));
    store.on("answer", () => this.update());
    store.on("select", () => this.selectionChanged());
  }

  show() {
    super.show();
    // All that moves between two frames is looked through once.
    if (!this.looking) this.looking = requestAnimationFrame(() => { this.looking = null; this.look(); });
  }

  // Takes what is out of sight out of a large drawing, and brings up to date what comes into sight; `all` brings everything.
  // Letters that are not displayed would still be laid out at each change of size, so they leave the document.
  look(all = false) {
    const many = this.nodes.size > MOST_KEPT && !all;
    const { x, y, k } = this.view;
    this.tiny = many && k < TINY;
    this.svg.classList.toggle("tiny", this.tiny);
    const [width, height] = super.box();
    const fresh = [];
    let next = null;
    for (const [v, parts] of this.backwards) {
      const { group, inside, at, size } = parts;
      parts.out = many && (Math.abs((at[0] * k + x) * 2 - width) > width + size[0] * k + 80
        || Math.abs((at[1] * k + y) * 2 - height) > height + size[1] * k + 80)
        // The way in by the keyboard stays, and so does what has it.
        && group !== this.entry && group !== document.activeElement;
      if (parts.out) {
        group.remove();
        continue;
      }
      if (!group.parentNode) this.layer.insertBefore(group, next);
      next = group;
      if (this.tiny) inside.remove();
      else if (!inside.parentNode) {
        group.append(inside);
        if (!parts.fits) fresh.push(parts);
      }
      if (parts.old) this.updateNode(v, parts);
    }
    this.squeeze(fresh);
  }

  // The buttons at the bottom cover nothing.
  box() {
    const [width, height] = super.box();
    return [width, Math.max(height - 40, 60)];
  }

  draw(drawing, style) {
    this.drawing = drawing;
    this.style = style;
    this.size = [drawing.width, drawing.height];
    this.nodes.clear();
    this.edges.clear();
    const { directed } = this.store.model;
    const at = new Map(drawing.nodes.map((v, i) => [v, i]));
    const line = (a, b, points, kind) => svg("path", { class: kind, d: points, "marker-end": directed && kind === "edge" ? "url(#arrow)" : null,
      "data-from": a, "data-to": b });
    const straight = (a, b) => {
      const [i, j] = [at.get(a), at.get(b)];
      const p = border(drawing.centres[i], drawing.sizes[i], drawing.centres[j]);
      const q = border(drawing.centres[j], drawing.sizes[j], drawing.centres[i]);
      return `M${p.map((x) => x.toFixed(1)).join(" ")}L${q.map((x) => x.toFixed(1)).join(" ")}`;
    };
    const lines = drawing.edges.map(([a, b], k) => {
      const element = line(a, b, drawing.curves ? path(drawing.curves[k]) : straight(a, b), "edge");
      this.edges.set(`${a}-${b}`, element);
      return element;
    });
    const married = drawing.married.map(([a, b]) => line(a, b, straight(a, b), "married"));
    this.added = svg("g", { class: "added" });
    drawing.nodes.forEach((v, i) => this.node(v, drawing.centres[i], drawing.sizes[i], drawing.beyond[i]));
    this.svg.classList.toggle("moral", drawing.moral);
    this.svg.classList.toggle("bars", style === "bars");
    this.layer = svg("g", { class: "nodes" });
    this.backwards = [...this.nodes].reverse();
    replace(this.content, svg("g", { class: "edges" }, lines, married), this.added, this.layer);
    this.selectionChanged(false);
    this.mark(this.marks);
    // A large one waits for its place.
    if (this.nodes.size > MOST_KEPT) this.show();
    else this.look();
  }

  node(v, [x, y], [width, height], beyond) {
    const { name, states } = this.store.model.variables[v];
    const group = svg("g", { class: "node", "data-v": v, tabindex: "-1", role: "button",
      transform: `translate(${(x - width / 2).toFixed(1)} ${(y - height / 2).toFixed(1)})` },
      svg("title", {}, name), svg("rect", { class: "box", width, height, rx: 6 }));
    const inside = svg("g");
    const parts = { group, inside, at: [x, y], size: [width, height], rows: [], out: true, old: true };
    const bars = this.style === "bars";
    inside.append(svg("text", { class: "name", x: width / 2, y: 18, "text-anchor": "middle" }, clip(name, MOST_LETTERS)));
    if (bars) {
      const most = states.length > MOST_BARS ? MOST_BARS - 1 : states.length;
      const left = 70, room = width - left - 50;
      for (let k = 0; k < most; k++) {
        const top = LINE + BAR * k;
        const before = svg("rect", { class: "before", x: left, y: top + 2, height: BAR - 5, width: 0, rx: 1.5 });
        const after = svg("rect", { class: "after", x: left, y: top + 5, height: BAR - 11, width: 0, rx: 1.5 });
        const text = svg("text", { class: "number", x: width - 6, y: top + 13, "text-anchor": "end" });
        const title = svg("title"), label = svg("text", { class: "state", x: 8, y: top + 13 });
        const row = svg("g", { class: "row" }, title,
          svg("rect", { class: "hit", x: 2, y: top, width: width - 4, height: BAR - 1, rx: 3 }), label, before, after, text);
        inside.append(row);
        parts.rows.push({ row, title, label, before, after, text, room });
      }
      this.assign(v, parts, [...parts.rows.keys()]);
      if (most < states.length) {
        inside.append(svg("text", { class: "state", x: 8, y: LINE + BAR * most + 13 }, `${states.length - most} more states`));
      }
    }
    const foot = bars ? LINE : height - 5;
    parts.share = svg("rect", { class: "share", x: 3, y: foot, height: height - foot - (bars ? 6 : 2), width: 0, rx: 1.5 });
    group.append(parts.share);
    if (beyond) {
      const wide = 16 + 7 * String(beyond).length;
      parts.beyond = beyond;
      inside.append(svg("g", { class: "beyond", "data-beyond": beyond, transform: `translate(${width - wide + 8} ${height - 8})` },
        svg("title", {}, `${beyond} neighbours are not drawn: click to draw them`),
        svg("rect", { width: wide, height: 17, rx: 8.5 }),
        svg("text", { x: wide / 2, y: 12.5, "text-anchor": "middle" }, `+${beyond}`)));
    }
    this.nodes.set(v, parts);
  }

  // Which states the rows of a node stand for.
  assign(v, parts, those) {
    const { name, states } = this.store.model.variables[v];
    those.forEach((k, i) => {
      const row = parts.rows[i];
      if (row.state === k) return;
      const known = row.state !== undefined;
      Object.assign(row, { state: k, p: null, prior: null, on: null });
      row.row.dataset.state = k;
      row.title.textContent = `${name} = ${states[k]}`;
      row.label.textContent = clip(states[k], 9);
      if (known) this.fitText(row.label, 58);
    });
  }

  // Of more states than there is room for, the likeliest, in their order.
  likeliest(from, card, room) {
    const { values } = this.store.answer;
    const order = Array.from({ length: card }, (_, k) => k).sort((a, b) => values[from + b] - values[from + a] || a - b);
    return order.slice(0, room).sort((a, b) => a - b);
  }

  fitText(text, room) {
    for (const name of ["textLength", "lengthAdjust"]) text.removeAttribute(name);
    if (text.getComputedTextLength() <= room) return;
    text.setAttribute("textLength", room);
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }

  // Names that are wider than their boxes in this font; all are measured before any is changed. Seen from afar, names
  // above bars are written as large as the box allows.
  squeeze(those) {
    const bars = this.style === "bars", scale = bars && this.svg.classList.contains("far") ? NEAR / FAR : 1;
    const measured = those.flatMap((parts) => {
      parts.fits = true;
      return [[parts.inside.querySelector(".name"), parts.size[0] - 12, scale], ...parts.rows.map(({ label }) => [label, 58, 1])];
    }).map(([text, room, by]) => [text, room, text.getComputedTextLength() * by, bars && text.classList.contains("name")]);
    for (const [text, room, length, grows] of measured) {
      if (length > room) {
        text.setAttribute("textLength", room);
        text.setAttribute("lengthAdjust", "spacingAndGlyphs");
      } else if (grows && length * FAR > room * NEAR) text.style.setProperty("--far", `${((NEAR * room) / length).toFixed(1)}px`);
    }
  }

  // Only what has changed and is in sight: bars, numbers, marks of evidence.
  update() {
    if (!this.store.answer) return;
    for (const [v, parts] of this.nodes) {
      const set = this.store.evidence.do[v];
      if (parts.set !== set) {
        parts.set = set;
        for (const [key, element] of this.edges) if (key.endsWith(`-${v}`)) element.classList.toggle("cut", set !== undefined);
      }
      parts.old = true;
      if (!parts.out) this.updateNode(v, parts);
    }
  }

  updateNode(v, parts) {
    const { store } = this;
    const values = store.answer?.values;
    if (!values) return;
    const from = store.offsets[v];
    const seen = store.evidence.states[v], set = store.evidence.do[v];
    const kind = set !== undefined ? "node done" : seen !== undefined ? "node seen"
      : v in store.evidence.likelihoods ? "node seen soft" : "node";
    const marked = this.marked?.get(v);
    const classes = kind + (v === store.selected ? " selected" : "") + (marked ? ` ${marked}` : "");
    if (parts.classes !== classes) parts.group.setAttribute("class", (parts.classes = classes));
    let best = 0;
    const card = store.offsets[v + 1] - from;
    for (let k = 0; k < card; k++) {
      if (values[from + k] > values[from + best]) best = k;
    }
    // Rows too small to be seen are brought up to date when they can be.
    parts.old = this.tiny && parts.rows.length > 0;
    if (!this.tiny) this.updateRows(v, parts, from, card, seen, set);
    const top = values[from + best];
    if (parts.top !== top) {
      parts.top = top;
      parts.share.setAttribute("width", (top * (parts.size[0] - 6)).toFixed(1));
    }
    const moved = store.moved(v).toFixed(2);
    if (parts.moved !== moved) parts.group.style.setProperty("--moved", (parts.moved = moved));
    const label = `${store.name(v)}: ${store.states(v)[best]} ${percent(top)}${set !== undefined ? ", set" : seen !== undefined ? ", observed" : ""}`
      + (parts.beyond ? `; ${parts.beyond} neighbours not drawn, e draws them` : "");
    if (parts.label !== label) parts.group.setAttribute("aria-label", (parts.label = label));
  }

  updateRows(v, parts, from, card, seen, set) {
    const { values } = this.store.answer, { prior } = this.store;
    if (parts.rows.length && parts.rows.length < card) this.assign(v, parts, this.likeliest(from, card, parts.rows.length));
    for (const row of parts.rows) {
      const k = row.state, p = values[from + k];
      if (row.p !== p) {
        row.p = p;
        row.after.setAttribute("width", (p * row.room).toFixed(1));
        row.text.textContent = percent(p);
      }
      const before = prior?.[from + k] ?? 0;
      if (row.prior !== before) row.before.setAttribute("width", ((row.prior = before) * row.room).toFixed(1));
      const on = k === seen || k === set;
      if (row.on !== on) row.row.setAttribute("class", (row.on = on) ? "row on" : "row");
    }
  }

  // What a panel points out: classes by variable, edges of paths, further edges.
  mark(marks = {}) {
    this.marks = marks;
    this.marked = new Map();
    for (const [kind, those] of Object.entries(marks.nodes ?? {})) {
      for (const v of those) this.marked.set(v, `${this.marked.get(v) ?? ""} ${kind}`.trim());
    }
    this.svg.classList.toggle("pointing", Boolean(marks.dim));
    const hot = new Set();
    for (const nodes of marks.paths ?? []) {
      for (let i = 0; i + 1 < nodes.length; i++) {
        hot.add(`${nodes[i]}-${nodes[i + 1]}`);
        hot.add(`${nodes[i + 1]}-${nodes[i]}`);
      }
    }
    for (const [key, element] of this.edges) {
      const on = hot.has(key);
      element.classList.toggle("hot", on);
      if (this.store.model.directed) element.setAttribute("marker-end", on ? "url(#arrow-hot)" : "url(#arrow)");
    }
    const extra = (marks.edges ?? []).flatMap(([a, b]) => {
      const [p, q] = [this.nodes.get(a), this.nodes.get(b)];
      if (!p || !q) return [];
      const [from, to] = [border(p.at, p.size, q.at), border(q.at, q.size, p.at)];
      return [svg("path", { class: "fill", d: `M${from.join(" ")}L${to.join(" ")}` })];
    });
    if (this.added) replace(this.added, extra);
    this.update();
  }

  selectionChanged(move = true) {
    const { selected } = this.store;
    const first = this.nodes.has(selected) ? selected : this.nodes.keys().next().value;
    this.entry?.setAttribute("tabindex", "-1");
    this.entry = this.nodes.get(first)?.group;
    this.entry?.setAttribute("tabindex", "0");
    // It may be out of sight, and have to be there all the same.
    if (this.nodes.get(first)?.out) this.look();
    this.update();
    const parts = this.nodes.get(selected);
    if (!parts || !move) return;
    const [width, height] = this.box();
    const { x, y, k } = this.view;
    const [px, py] = [parts.at[0] * k + x, parts.at[1] * k + y];
    if (px < 0 || py < 0 || px > width || py > height) this.centre(parts.at);
  }

  clicked(event) {
    const node = event.target.closest(".node");
    if (!node) return;
    const v = Number(node.dataset.v);
    if (event.target.closest(".beyond")) {
      this.expand?.(v);
      return;
    }
    if (this.store.picker) {
      this.store.picker(v);
      return;
    }
    const row = event.target.closest(".row");
    this.store.select(v);
    if (row) this.store.toggle(v, Number(row.dataset.state));
  }

  nodeKey(event) {
    const node = event.target.closest(".node");
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    const v = Number(node.dataset.v);
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (direction) {
      const next = this.nearest(v, direction);
      if (next !== null) {
        this.store.select(next);
        this.nodes.get(next).group.focus({ preventScroll: true });
      }
    } else if (event.key === "Enter" || event.key === " ") {
      if (this.store.picker) this.store.picker(v);
      else this.store.select(v);
    } else if (/^[1-9]$/.test(event.key) && Number(event.key) <= this.store.states(v).length) {
      this.store.select(v);
      this.store.toggle(v, Number(event.key) - 1);
    } else if (event.key === "e" && this.nodes.get(v).beyond) this.expand?.(v);
    else if (event.key === "Delete" || event.key === "Backspace") this.store.forget(v);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The nearest node in a direction, what lies aside counting double.
  nearest(v, [dx, dy]) {
    const [x, y] = this.nodes.get(v).at;
    let best = null, least = Infinity;
    for (const [u, { at }] of this.nodes) {
      const along = (at[0] - x) * dx + (at[1] - y) * dy;
      const aside = Math.abs((at[0] - x) * dy) + Math.abs((at[1] - y) * dx);
      if (u !== v && along > 1 && along + 2 * aside < least) [best, least] = [u, along + 2 * aside];
    }
    return best;
  }
}
