// A canvas that is painted on, with the mouse, a finger, a pen or the keyboard.
import { h } from "../../dom.js";
import { PALETTE } from "../shared/controls.js";
import { colourOf } from "../shared/pixels.js";

export const NONE = 255;
const MOST_STEPS = 50;

export class Brush {
  // `painted` is called at the end of every stroke.
  constructor(painted) {
    this.painted = painted;
    this.size = 2;
    this.kind = 0;
    this.past = [];
    this.at = null;
    this.cursor = null;
    this.canvas = h("canvas", { class: "picture paint", tabindex: "0", role: "application",
      "aria-label": "Picture to paint on: arrow keys move, the space bar paints, digits choose a class, 0 or Delete the rubber" });
    this.canvas.addEventListener("pointerdown", (event) => this.down(event));
    this.canvas.addEventListener("pointermove", (event) => { if (this.at) this.line(this.place(event)); });
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => this.up());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => { this.cursor = null; this.draw(); });
  }

  show(picture) {
    this.picture = picture;
    this.strokes = new Uint8Array(picture.rows * picture.columns).fill(NONE);
    this.past = [];
    this.cursor = null;
    this.draw();
  }

  get empty() { return this.strokes.every((k) => k === NONE); }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientY - box.top) / box.height) * this.picture.rows, ((event.clientX - box.left) / box.width) * this.picture.columns];
  }

  keep() {
    this.past.push(this.strokes.slice());
    this.past.splice(0, Math.max(0, this.past.length - MOST_STEPS));
  }

  down(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.keep();
    this.at = this.place(event);
    this.line(this.at);
  }

  up() {
    if (!this.at) return;
    this.at = null;
    this.painted();
  }

  line(to) {
    const from = this.at ?? to;
    const steps = Math.max(1, Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1])));
    for (let s = 0; s <= steps; s++) this.dot(from[0] + ((to[0] - from[0]) * s) / steps, from[1] + ((to[1] - from[1]) * s) / steps);
    if (this.at) this.at = to;
    this.draw();
  }

  dot(row, column) {
    const { rows, columns } = this.picture, radius = this.size - 0.5;
    const [r, c] = [Math.floor(row), Math.floor(column)], reach = Math.ceil(radius);
    for (let i = Math.max(0, r - reach); i <= Math.min(rows - 1, r + reach); i++) {
      for (let j = Math.max(0, c - reach); j <= Math.min(columns - 1, c + reach); j++) {
        if ((i - r) ** 2 + (j - c) ** 2 <= radius ** 2) this.strokes[i * columns + j] = this.kind;
      }
    }
  }

  key(event) {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const { rows, columns } = this.picture;
    this.cursor ??= [Math.floor(rows / 2), Math.floor(columns / 2)];
    if (move) {
      const far = event.shiftKey ? 8 : 1;
      this.cursor = [Math.max(0, Math.min(rows - 1, this.cursor[0] + far * move[0])), Math.max(0, Math.min(columns - 1, this.cursor[1] + far * move[1]))];
    } else if (event.key === " ") {
      this.keep();
      this.dot(...this.cursor);
      this.painted();
    } else if (event.key === "0" || event.key === "Delete") this.onkind?.(NONE);
    else if (/^[1-9]$/.test(event.key)) this.onkind?.(Number(event.key) - 1);
    else return;
    event.preventDefault();
    this.draw();
  }

  undo() {
    if (!this.past.length) return false;
    this.strokes = this.past.pop();
    this.draw();
    return true;
  }

  clear() {
    this.keep();
    this.strokes.fill(NONE);
    this.draw();
  }

  draw() {
    const { rows, columns } = this.picture;
    if (this.canvas.width !== columns || this.canvas.height !== rows) [this.canvas.width, this.canvas.height] = [columns, rows];
    const image = new ImageData(columns, rows);
    for (let k = 0; k < rows * columns; k++) {
      const own = colourOf(this.picture, k), paint = this.strokes[k] === NONE ? null : PALETTE[this.strokes[k]];
      for (let c = 0; c < 3; c++) image.data[4 * k + c] = paint ? 0.25 * own[c] + 0.75 * paint[c] : own[c];
      image.data[4 * k + 3] = 255;
    }
    if (this.cursor) {
      const [r, c] = this.cursor;
      for (const [i, j] of [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [2, 0], [-2, 0], [0, 2], [0, -2]]) {
        if (r + i < 0 || r + i >= rows || c + j < 0 || c + j >= columns) continue;
        image.data.set([255, 0, 200, 255], 4 * ((r + i) * columns + c + j));
      }
    }
    this.canvas.getContext("2d").putImageData(image, 0, 0);
    this.canvas.dataset.painted = this.strokes.reduce((n, k) => n + (k !== NONE), 0);
  }
}
