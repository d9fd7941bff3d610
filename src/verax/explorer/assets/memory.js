/**
 * The memory alive over a stage, as a curve with its peak and the rows that hold it.
 */

import { bytesText, draw, make } from "./elements.js";
import { isRow } from "./links.js";
import { View } from "./view.js";

const CURVE_WIDTH = 1000;
const CURVE_HEIGHT = 130;
const MOST_HOLDERS = 40;

export class Memory {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.element = make("div", { class: "memory" });
    view.watch((changed) => {
      if (changed.has("focus")) this.fill();
      else if (changed.has("chosen") || changed.has("hovered")) this.mark();
    });
    this.fill();
  }

  get stage() {
    return this.view.program.stages[this.view.focus];
  }

  /** Points (row, bytes) in order. @returns {[number, number][]} */
  get points() {
    const live = this.stage?.columns.live ?? [];
    return live.flatMap((/** @type {number|null} */ bytes, /** @type {number} */ row) => (bytes === null ? [] : [[row, bytes]]));
  }

  fill() {
    const points = this.points;
    if (points.length < 2) {
      this.element.replaceChildren(...this.whole(), make("p", { class: "empty", text: "Memory is not estimated for this stage." }));
      this.cursor = undefined;
      return;
    }
    const most = Math.max(...[points.reduce((top, [, bytes]) => Math.max(top, bytes), 1), this.stage.peak?.bytes ?? 0]);
    this.x = (/** @type {number} */ row) => (row / Math.max(1, this.stage.size - 1)) * CURVE_WIDTH;
    this.y = (/** @type {number} */ bytes) => CURVE_HEIGHT - (bytes / most) * (CURVE_HEIGHT - 8);
    this.element.replaceChildren(...this.whole(), this.figure(points, most), this.holders());
    this.mark();
  }

  /** The predicted memory of the whole program, before and after its budget if it has one. @returns {HTMLElement[]} */
  whole() {
    const note = this.view.program.raw.memory;
    if (!note) return [];
    const { curve, before } = note;
    const most = Math.max(1, ...curve.bytes, ...(before?.bytes ?? []));
    const tip = make("span", { class: "curve-tip" });
    const svg = draw(
      "svg",
      { viewBox: `0 0 ${CURVE_WIDTH} ${CURVE_HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": wholeText(curve, before), class: "curve" },
      ...(before ? [draw("path", { class: "outline before", d: stepped(before.bytes, most) })] : []),
      draw("path", { class: "outline", d: stepped(curve.bytes, most) }),
    );
    const at = (/** @type {MouseEvent} */ event) => {
      const box = svg.getBoundingClientRect();
      return Math.max(0, Math.min(curve.bytes.length - 1, Math.floor(((event.clientX - box.left) / box.width) * curve.bytes.length)));
    };
    const key = (/** @type {number} */ i) => (curve.file[i] < 0 ? null : `${curve.file[i]}:${curve.line[i]}`);
    svg.addEventListener("pointermove", (event) => {
      const i = at(/** @type {PointerEvent} */ (event));
      const line = key(i);
      tip.textContent = `${line === null ? "" : `${this.view.program.place(line)}: `}${bytesText(curve.bytes[i])}`;
      if (line !== null) this.view.hover({ line });
    });
    svg.addEventListener("pointerleave", () => this.view.hover(null));
    svg.addEventListener("click", (event) => {
      const line = key(at(/** @type {MouseEvent} */ (event)));
      if (line !== null) this.view.choose({ line });
    });
    return [make("figure", { class: "whole" }, make("figcaption", {}, `${wholeText(curve, before)} `, tip), make("div", { class: "plot" }, svg))];
  }

  /** @param {[number, number][]} points @param {number} most */
  figure(points, most) {
    const { stage } = this;
    const outline = thinned(points).map(([row, bytes]) => `${this.x?.(row).toFixed(1)} ${this.y?.(bytes).toFixed(1)}`);
    const first = this.x?.(points[0][0]);
    const last = this.x?.(points[points.length - 1][0]);
    const line = `M${outline.join("L")}`;
    this.cursor = draw("line", { class: "cursor", y1: 0, y2: CURVE_HEIGHT });
    const grid = [0.25, 0.5, 0.75, 1].map((share) => draw("line", { class: "grid", x1: 0, x2: CURVE_WIDTH, y1: this.y?.(most * share), y2: this.y?.(most * share) }));
    const svg = draw(
      "svg",
      { viewBox: `0 0 ${CURVE_WIDTH} ${CURVE_HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `memory over ${stage.name}, peak ${bytesText(stage.peak?.bytes ?? most)}`, class: "curve" },
      ...grid,
      draw("path", { class: "area", d: `${line}L${last} ${CURVE_HEIGHT}L${first} ${CURVE_HEIGHT}Z` }),
      draw("path", { class: "outline", d: line }),
      this.cursor,
    );
    const tip = make("span", { class: "curve-tip" });
    const rowAt = (/** @type {PointerEvent | MouseEvent} */ event) => {
      const share = (event.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width;
      return nearest(points, share * (stage.size - 1));
    };
    svg.addEventListener("pointermove", (event) => {
      const [row, bytes] = rowAt(/** @type {PointerEvent} */ (event));
      tip.textContent = `row ${row + 1}: ${bytesText(bytes)}`;
      this.view.hover({ stage: stage.index, row });
    });
    svg.addEventListener("pointerleave", () => this.view.hover(null));
    svg.addEventListener("click", (event) => this.view.choose({ stage: stage.index, row: rowAt(/** @type {MouseEvent} */ (event))[0] }));
    return make("figure", {}, make("figcaption", {}, `${stage.name}: estimated memory, peak ${bytesText(stage.peak?.bytes ?? most)} `, tip), make("div", { class: "plot" }, svg, ...this.peakDot()));
  }

  /** @returns {HTMLElement[]} */
  peakDot() {
    const { peak, size, index } = this.stage;
    if (!peak) return [];
    const left = (peak.row / Math.max(1, size - 1)) * 100;
    return [
      make("button", {
        class: "peak",
        style: `left:${left}%`,
        title: `the peak: row ${peak.row + 1}`,
        "aria-label": `choose the row of the peak, ${bytesText(peak.bytes)}`,
        onclick: () => this.view.choose({ stage: index, row: peak.row }),
      }),
    ];
  }

  /** The rows whose results are alive at the peak. */
  holders() {
    const { peak, index } = this.stage;
    const stage = this.stage;
    const holders = [...(peak?.holders ?? [])].sort((a, b) => b[1] - a[1]);
    const items = holders.slice(0, MOST_HOLDERS).map(([row, bytes]) =>
      make(
        "li",
        {},
        make(
          "button",
          { class: "jump holder", style: `--heat:${(bytes / (peak.bytes || 1)) * 100}%`, onclick: () => this.view.choose({ stage: index, row }) },
          make("span", { class: "amount", text: bytesText(bytes) }),
          make("span", { class: "holder-text", text: `${row + 1}  ${stage.text(row)}` }),
        ),
      ),
    );
    const more = holders.length > MOST_HOLDERS ? `, the largest ${MOST_HOLDERS} of ${holders.length}` : "";
    return make("div", { class: "holders" }, make("h3", { text: `alive at the peak${more}` }), make("ol", {}, ...items));
  }

  mark() {
    const target = this.view.hovered ?? this.view.chosen;
    const here = isRow(target) && target.stage === this.stage?.index;
    this.cursor?.classList.toggle("shown", here);
    if (!here || !this.cursor) return;
    const x = String(this.x?.(target.row));
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }
}

/** What the curve of the whole program says. @param {{bytes: number[]}} curve @param {{bytes: number[]} | null} before */
function wholeText(curve, before) {
  const top = bytesText(Math.max(...curve.bytes));
  return before ? `the program: ${top} predicted, ${bytesText(Math.max(...before.bytes))} without its budget` : `the program: ${top} predicted beside arguments and results`;
}

/** A curve over the whole width, each point as wide as the others. @param {number[]} bytes @param {number} most */
function stepped(bytes, most) {
  const width = CURVE_WIDTH / bytes.length;
  const y = (/** @type {number} */ count) => (CURVE_HEIGHT - (count / most) * (CURVE_HEIGHT - 8)).toFixed(1);
  return `M${bytes.map((count, i) => `${(i * width).toFixed(1)} ${y(count)}H${((i + 1) * width).toFixed(1)}`).join("L")}`;
}

/**
 * At most about a thousand points, by the largest of each group.
 * @param {[number, number][]} points
 */
function thinned(points) {
  const group = Math.ceil(points.length / 1000);
  if (group === 1) return points;
  /** @type {[number, number][]} */ const kept = [];
  for (let i = 0; i < points.length; i += group) {
    kept.push(points.slice(i, i + group).reduce((top, point) => (point[1] > top[1] ? point : top)));
  }
  return kept;
}

/** The point nearest to a row. @param {[number, number][]} points @param {number} row */
function nearest(points, row) {
  return points.reduce((best, point) => (Math.abs(point[0] - row) < Math.abs(best[0] - row) ? point : best));
}
