/**
 * A narrow strip beside a list: where in the whole of it the lit rows, hits and changes are.
 *
 * What stays while rows are lit is painted once and copied. Nothing here asks the browser
 * for sizes or styles that it would have to compute anew for each row that is pointed at.
 */

import { make } from "./elements.js";

const RULER_WIDTH = 12;

/** @typedef {Iterable<[number, string, number]>} Marks  row, custom property of its colour, column 0..2 */

export class Ruler {
  /**
   * @param {(share: number) => void} go  called with 0..1 on a click
   * @param {() => void} resized  called when its size is another
   */
  constructor(go, resized) {
    this.canvas = make("canvas", { class: "ruler", "aria-hidden": "true", title: "overview: click to go there" });
    this.canvas.addEventListener("click", (event) => go(event.offsetY / this.height));
    this.height = 0;
    this.theme = "";
    /** @type {Map<string, string>} */ this.colours = new Map();
    /** @type {HTMLCanvasElement | null} */ this.still = null;
    new ResizeObserver(([entry]) => {
      this.height = entry.contentRect.height;
      this.still = null;
      if (this.height) resized();
    }).observe(this.canvas);
  }

  /** The marks that stay are others now. */
  forget() {
    this.still = null;
  }

  /**
   * @param {number} length  the number of rows
   * @param {() => Marks} still  marks that stay until `forget`
   * @param {Marks} marks
   */
  paint(length, still, marks) {
    if (!this.height) return;
    const theme = `${document.documentElement.dataset.theme} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
    if (theme !== this.theme) {
      this.colours.clear();
      this.still = null;
      this.theme = theme;
    }
    if (!this.still) {
      this.still = /** @type {HTMLCanvasElement} */ (make("canvas"));
      this.draw(this.start(this.still), length, still());
    }
    const context = this.start(/** @type {HTMLCanvasElement} */ (this.canvas));
    context.drawImage(this.still, 0, 0, RULER_WIDTH, this.height);
    this.draw(context, length, marks);
  }

  /** An empty canvas in units of the page. @param {HTMLCanvasElement} canvas */
  start(canvas) {
    const scale = devicePixelRatio || 1;
    canvas.width = RULER_WIDTH * scale;
    canvas.height = this.height * scale;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(scale, scale);
    return context;
  }

  /** @param {CanvasRenderingContext2D} context @param {number} length @param {Marks} marks */
  draw(context, length, marks) {
    const share = this.height / Math.max(1, length);
    const size = Math.max(2, share);
    for (const [row, name, column] of marks) {
      context.fillStyle = this.colour(name);
      const y = Math.min(row * share, this.height - size);
      context.fillRect(1 + column * 4, y, column === 2 ? 3 : 4, Math.min(size, 4));
    }
  }

  /** The colour of a custom property in this theme. @param {string} name */
  colour(name) {
    let colour = this.colours.get(name);
    if (colour === undefined) {
      this.canvas.style.color = `var(${name})`;
      colour = getComputedStyle(this.canvas).color;
      this.canvas.style.color = "";
      this.colours.set(name, colour);
    }
    return colour;
  }
}
