// A drawing that can be moved and magnified, by mouse, fingers and keys.
import { svg } from "../../dom.js";

export function path(points) {
  let d = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
  for (let i = 1; i + 2 < points.length; i += 3) {
    d += "C" + [0, 1, 2].map((k) => points[i + k].map((x) => x.toFixed(1)).join(" ")).join(",");
  }
  return d;
}

// Where a straight line from the centre of a box leaves it.
export function border(centre, size, towards) {
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
