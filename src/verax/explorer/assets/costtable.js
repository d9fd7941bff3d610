/**
 * Costs by source line of the stage in focus, as a table that sorts by any column.
 */

import { coloured } from "./colours.js";
import { COSTS } from "./document.js";
import { costText, counted, make } from "./elements.js";
import { isRow } from "./links.js";
import { shownCosts } from "./heat.js";
import { View } from "./view.js";

const MOST_LINES = 200;
/** @type {Record<string, string>} */ const NAMES = { back: "on the way back" };
/** @type {Record<string, string>} */
const TITLES = { rows: "rows that name the line", back: "the share of the operations that a gradient adds on the way back" };

export class CostTable {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    /** The column asked for, and the one that this stage has. */
    this.wanted = "flops";
    this.order = "rows";
    this.falling = true;
    this.columns = ["line", "rows"];
    this.element = make("div", { class: "cost-table", tabindex: 0, role: "region", "aria-label": "costs by source line" });
    view.watch((changed) => {
      if (changed.has("ofStage") || (changed.has("focus") && view.ofStage)) this.fill();
      else if (changed.has("focus")) this.label();
      else if (changed.has("chosen")) this.mark();
    });
    this.fill();
  }

  fill() {
    const { byLine, most } = shownCosts(this.view);
    const back = [...byLine.values()].some((sums) => sums.back);
    this.columns = ["line", "rows", ...COSTS.filter((cost) => most[cost]), ...(back ? ["back"] : [])];
    this.order = this.columns.includes(this.wanted) ? this.wanted : "rows";
    const lines = [...byLine];
    lines.sort((left, right) => this.compare(left, right));
    const heads = this.columns.map((name) =>
      make(
        "th",
        { scope: "col", "aria-sort": name === this.order ? (this.falling ? "descending" : "ascending") : "none" },
        make("button", { class: "quiet", title: TITLES[name], text: (NAMES[name] ?? name) + (name === this.order ? (this.falling ? " ↓" : " ↑") : ""), onclick: () => this.sortBy(name) }),
      ),
    );
    const rows = lines.slice(0, MOST_LINES).map(([key, sums]) => this.row(key, sums, most));
    const more = lines.length > MOST_LINES ? `, the first ${MOST_LINES} shown` : "";
    const caption = make("caption", {}, this.choice(), ` ${counted(lines.length, "line")}${more}`);
    this.element.replaceChildren(make("table", {}, caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
    if (!lines.length) this.element.replaceChildren(make("p", { class: "empty" }, this.choice(), " No row names a source line."));
    this.label();
    this.mark();
  }

  /** Costs of the whole program, or of the stage in focus alone. */
  choice() {
    const { view } = this;
    const button = (/** @type {boolean} */ ofStage) =>
      make("button", { class: "segment", "aria-pressed": String(view.ofStage === ofStage), text: ofStage ? "" : "whole program", onclick: () => this.ask(ofStage) });
    this.stageButton = button(true);
    return make("span", { class: "segments", role: "group", "aria-label": "costs of" }, button(false), this.stageButton);
  }

  /** @param {boolean} ofStage */
  ask(ofStage) {
    this.view.change({ ofStage });
    /** @type {HTMLElement | null} */ (this.element.querySelector('.segment[aria-pressed="true"]'))?.focus();
  }

  label() {
    if (this.stageButton) this.stageButton.textContent = `stage ${this.view.program.stages[this.view.focus]?.name ?? ""}`;
  }

  /** @param {[string, any]} left @param {[string, any]} right */
  compare(left, right) {
    const sign = this.falling ? -1 : 1;
    if (this.order !== "line") return sign * (left[1][this.order] - right[1][this.order]);
    const [a, b] = [left[0], right[0]].map((key) => key.split(":").map(Number));
    return sign * (a[0] - b[0] || a[1] - b[1]);
  }

  /** @param {string} name */
  sortBy(name) {
    this.falling = name === this.order ? !this.falling : name !== "line";
    this.wanted = name;
    this.fill();
    const at = this.columns.indexOf(name);
    /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll("th button")])[at]?.focus();
  }

  /** @param {string} key @param {any} sums @param {Record<string, number>} most */
  row(key, sums, most) {
    const { program } = this.view;
    const cells = this.columns.slice(1).map((name) => {
      if (name === "back") return make("td", { class: "amount", text: sums.flops && sums.back ? `${Math.round((100 * sums.back) / sums.flops)} %` : "" });
      const open = name === "flops" && sums.known === 0 ? "+" : "";
      const text = name === "rows" ? String(sums.rows) : costText(name, sums[name]) + open;
      const share = name === "rows" ? 0 : sums[name] / (most[name] || 1);
      return make("td", { class: "amount", style: `--heat:${share * 100}%`, text });
    });
    const jump = make("button", { class: "jump" }, make("span", { class: "info-place", text: program.place(key) }), coloured(program.sourceText(key).trim(), "python"));
    const row = make("tr", { "data-line": key }, make("th", { scope: "row" }, jump), ...cells);
    jump.addEventListener("click", () => this.view.choose({ line: key }));
    row.addEventListener("pointerenter", () => this.view.hover({ line: key }));
    row.addEventListener("pointerleave", () => this.view.hover(null));
    return row;
  }

  mark() {
    const { chosen } = this.view;
    const line = chosen !== null && !isRow(chosen) ? chosen.line : null;
    for (const row of this.element.querySelectorAll("tr[data-line]")) {
      row.classList.toggle("chosen", row.getAttribute("data-line") === line);
    }
  }
}
