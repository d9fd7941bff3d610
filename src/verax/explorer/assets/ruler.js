/**
 * A narrow strip beside a list: where in the whole of it the lit rows, hits and changes are.
 */

import { make } from "./elements.js";

const RULER_WIDTH = 12;

export class Ruler {
  /** @param {(share: number) => void} go  called with 0..1 on a click */
  constructor(go) {
    this.canvas = /** @type {HTMLCanvasElement} */ (
      make("canvas", { class: "ruler", "aria-hidden": "true", title: "overview: click to go there" })
    );
    this.canvas.addEventListener("click", (event) => go(event.offsetY / this.canvas.clientHeight));
  }

  /**
   * @param {number} length  the number of rows
   * @param {Iterable<[number, string, number]>} marks  row, custom property of its colour, column 0..2
   */
  paint(length, marks) {
    const { canvas } = this;
    const height = canvas.clientHeight;
    if (!height) return;
    const scale = devicePixelRatio || 1;
    canvas.width = RULER_WIDTH * scale;
    canvas.height = height * scale;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(scale, scale);
    const style = getComputedStyle(canvas);
    /** @type {Map<string, string>} */ const colours = new Map();
    const size = Math.max(2, height / Math.max(1, length));
    for (const [row, name, column] of marks) {
      if (!colours.has(name)) {
        canvas.style.color = `var(${name})`;
        colours.set(name, style.color);
      }
      context.fillStyle = colours.get(name) ?? "";
      const y = Math.min((row / Math.max(1, length)) * height, height - size);
      context.fillRect(1 + column * 4, y, column === 2 ? 3 : 4, Math.min(size, 4));
    }
    canvas.style.color = "";
  }
}
