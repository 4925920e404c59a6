// The drawing: nodes with bars, edges, pan and zoom, by mouse, fingers and keys.
import { h, svg, percent, replace } from "../../dom.js";

const LINE = 28, BAR = 18, MOST_BARS = 8, MOST_LETTERS = 24;
const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function path(points) {
  let d = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
  for (let i = 1; i + 2 < points.length; i += 3) {
    d += "C" + [0, 1, 2].map((k) => points[i + k].map((x) => x.toFixed(1)).join(" ")).join(",");
  }
  return d;
}

// Where a straight line from the centre of a box leaves it.
function border(centre, size, towards) {
  const dx = towards[0] - centre[0], dy = towards[1] - centre[1];
  const scale = Math.min(dx ? size[0] / 2 / Math.abs(dx) : Infinity, dy ? size[1] / 2 / Math.abs(dy) : Infinity, 1);
  return [centre[0] + dx * scale, centre[1] + dy * scale];
}

// A drawing that can be moved and magnified; `content` is what is drawn into.
export class Canvas {
  constructor(label) {
    this.content = svg("g");
    this.defs = svg("defs");
    this.svg = svg("svg", { class: "canvas", role: "application", "aria-label": label, tabindex: "0" }, this.defs, this.content);
    this.size = [100, 100];
    this.view = { x: 0, y: 0, k: 1 };
    this.pointers = new Map();
    this.svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.down(event));
    this.svg.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, (e) => this.pointers.delete(e.pointerId));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    // A drag is no click on what lies under it.
    this.svg.addEventListener("click", (event) => { if (this.dragged) event.stopPropagation(); }, true);
  }

  show() {
    const { x, y, k } = this.view;
    this.content.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
    this.svg.classList.toggle("far", k < 0.45);
  }

  box() {
    const { width, height } = this.svg.getBoundingClientRect();
    return [width || 600, height || 400];
  }

  fit(most = 1.25) {
    this.again = () => this.fit(most);
    const [width, height] = this.box();
    const k = Math.min((width - 30) / this.size[0], (height - 30) / this.size[1], most);
    this.view = { k, x: (width - this.size[0] * k) / 2, y: (height - this.size[1] * k) / 2 };
    this.show();
  }

  // The whole where it can be read at that size, else a readable part around a point.
  open(point, least) {
    this.fit();
    if (this.view.k >= least || !point) return;
    this.again = () => this.open(point, least);
    const [width, height] = this.box();
    // No emptier than it must be: the point in the middle unless the drawing ends before the window does.
    const place = (at, size, room) => (size * least <= room - 30 ? (room - size * least) / 2
      : Math.min(15, Math.max(room - 15 - size * least, room / 2 - at * least)));
    this.view = { k: least, x: place(point[0], this.size[0], width), y: place(point[1], this.size[1], height) };
    this.show();
  }

  // After the window has changed: unless somebody has moved the drawing.
  refit() { this.again?.(); }

  zoom(by, at = null) {
    this.again = null;
    const [width, height] = this.box();
    const [px, py] = at ?? [width / 2, height / 2];
    const k = Math.min(Math.max(this.view.k * by, 0.02), 6);
    const scale = k / this.view.k;
    this.view = { k, x: px - (px - this.view.x) * scale, y: py - (py - this.view.y) * scale };
    this.show();
  }

  centre([x, y]) {
    this.again = null;
    const [width, height] = this.box();
    this.view.x = width / 2 - x * this.view.k;
    this.view.y = height / 2 - y * this.view.k;
    this.show();
  }

  local(event) {
    const { left, top } = this.svg.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.004), this.local(event));
  }

  down(event) {
    this.pointers.set(event.pointerId, this.local(event));
    this.dragged = false;
    this.travelled = 0;
  }

  move(event) {
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    const at = this.local(event);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    this.travelled += Math.hypot(at[0] - last[0], at[1] - last[1]);
    if (this.travelled > 5 && !this.dragged) {
      this.dragged = true;
      this.svg.setPointerCapture(event.pointerId);
    }
    if (others.length) {
      const before = Math.hypot(last[0] - others[0][0], last[1] - others[0][1]);
      const after = Math.hypot(at[0] - others[0][0], at[1] - others[0][1]);
      if (before > 0) this.zoom(after / before, others[0]);
    } else if (this.dragged) {
      this.again = null;
      this.view.x += at[0] - last[0];
      this.view.y += at[1] - last[1];
      this.show();
    }
    this.pointers.set(event.pointerId, at);
  }

  key(event) {
    if (event.target !== this.svg && event.key.startsWith("Arrow")) return;
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (step) {
      this.again = null;
      this.view.x += step[0];
      this.view.y += step[1];
      this.show();
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}

const marker = (id, kind) => svg("marker", { id, class: kind, viewBox: "0 0 10 10", refX: "9.5", refY: "5",
  markerWidth: "7", markerHeight: "7", orient: "auto-start-reverse" }, svg("path", { d: "M0 1 10 5 0 9z" }));

export class Graph extends Canvas {
  constructor(store) {
    super("Network; arrow keys move between variables, digits set evidence");
    this.store = store;
    this.nodes = new Map();
    this.edges = new Map();
    this.marks = {};
    replace(this.defs, marker("arrow", "plain"), marker("arrow-hot", "hot"));
    this.content.addEventListener("click", (event) => this.clicked(event));
    this.content.addEventListener("keydown", (event) => this.nodeKey(event));
    store.on("answer", () => this.update());
    store.on("select", () => this.selectionChanged());
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
    const boxes = drawing.nodes.map((v, i) => this.node(v, drawing.centres[i], drawing.sizes[i], drawing.beyond[i]));
    this.svg.classList.toggle("moral", drawing.moral);
    this.svg.classList.toggle("bars", style === "bars");
    replace(this.content, svg("g", { class: "edges" }, lines, married), this.added, svg("g", { class: "nodes" }, boxes));
    this.squeeze();
    this.selectionChanged(false);
    this.update();
    this.mark(this.marks);
  }

  node(v, [x, y], [width, height], beyond) {
    const { name, states } = this.store.model.variables[v];
    const group = svg("g", { class: "node", "data-v": v, tabindex: "-1", role: "button",
      transform: `translate(${(x - width / 2).toFixed(1)} ${(y - height / 2).toFixed(1)})` },
      svg("title", {}, name), svg("rect", { class: "box", width, height, rx: 6 }));
    const parts = { group, at: [x, y], size: [width, height], rows: [] };
    const bars = this.style === "bars";
    group.append(svg("text", { class: "name", x: width / 2, y: 18, "text-anchor": "middle" }, clip(name, MOST_LETTERS)));
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
        group.append(row);
        parts.rows.push({ row, title, label, before, after, text, room });
      }
      this.assign(v, parts, [...parts.rows.keys()]);
      if (most < states.length) {
        group.append(svg("text", { class: "state", x: 8, y: LINE + BAR * most + 13 }, `${states.length - most} more states`));
      }
    } else {
      parts.share = svg("rect", { class: "share", x: 3, y: height - 5, height: 3, width: 0, rx: 1.5 });
      group.append(parts.share);
    }
    if (beyond) {
      const wide = 16 + 7 * String(beyond).length;
      parts.beyond = beyond;
      group.append(svg("g", { class: "beyond", "data-beyond": beyond, transform: `translate(${width - wide + 8} ${height - 8})` },
        svg("title", {}, `${beyond} neighbours are not drawn: click to draw them`),
        svg("rect", { width: wide, height: 17, rx: 8.5 }),
        svg("text", { x: wide / 2, y: 12.5, "text-anchor": "middle" }, `+${beyond}`)));
    }
    this.nodes.set(v, parts);
    return group;
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

  // Names that are wider than their boxes in this font; all are measured before any is changed.
  squeeze() {
    const texts = [...this.nodes.values()].flatMap(({ group, size }) =>
      [[group.querySelector(".name"), size[0] - 12], ...[...group.querySelectorAll(".row .state")].map((text) => [text, 58])]);
    const wide = texts.filter(([text, room]) => text.getComputedTextLength() > room);
    for (const [text, room] of wide) {
      text.setAttribute("textLength", room);
      text.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
  }

  // Only what has changed: bars, numbers, marks of evidence.
  update() {
    const { store } = this;
    const values = store.answer?.values;
    if (!values) return;
    for (const [v, parts] of this.nodes) {
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
      if (parts.rows.length && parts.rows.length < card) this.assign(v, parts, this.likeliest(from, card, parts.rows.length));
      for (const row of parts.rows) {
        const k = row.state, p = values[from + k];
        if (row.p !== p) {
          row.p = p;
          row.after.setAttribute("width", (p * row.room).toFixed(1));
          row.text.textContent = percent(p);
        }
        const prior = store.prior?.[from + k] ?? 0;
        if (row.prior !== prior) row.before.setAttribute("width", ((row.prior = prior) * row.room).toFixed(1));
        const on = k === seen || k === set;
        if (row.on !== on) row.row.setAttribute("class", (row.on = on) ? "row on" : "row");
      }
      const top = values[from + best];
      if (parts.share && parts.top !== top) {
        parts.top = top;
        parts.share.setAttribute("width", (top * (parts.size[0] - 6)).toFixed(1));
      }
      const moved = store.moved(v).toFixed(2);
      if (parts.moved !== moved) parts.group.style.setProperty("--moved", (parts.moved = moved));
      if (parts.set !== set) {
        parts.set = set;
        for (const [key, element] of this.edges) if (key.endsWith(`-${v}`)) element.classList.toggle("cut", set !== undefined);
      }
      const label = `${store.name(v)}: ${store.states(v)[best]} ${percent(top)}${set !== undefined ? ", set" : seen !== undefined ? ", observed" : ""}`
        + (parts.beyond ? `; ${parts.beyond} neighbours not drawn, e draws them` : "");
      if (parts.label !== label) parts.group.setAttribute("aria-label", (parts.label = label));
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
    for (const [v, parts] of this.nodes) parts.group.setAttribute("tabindex", v === first ? "0" : "-1");
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
