/**
 * Search over the source and all stages: hits are counted, marked and stepped through.
 */

import { counted, make } from "./elements.js";
import { isRow } from "./links.js";
import { View } from "./view.js";

export class Search {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    /** @type {import("./links.js").Target[]} */ this.found = [];
    this.at = -1;
    this.input = /** @type {HTMLInputElement} */ (
      make("input", {
        type: "search",
        class: "search-input",
        placeholder: "search all panes  ( / )",
        "aria-label": "search the source and all stages",
        spellcheck: "false",
        autocomplete: "off",
      })
    );
    this.count = make("span", { class: "search-count", role: "status", "aria-live": "polite" });
    const before = make("button", { class: "quiet", text: "↑", title: "previous hit (Shift+Enter)", "aria-label": "previous hit", onclick: () => this.step(-1) });
    const after = make("button", { class: "quiet", text: "↓", title: "next hit (Enter)", "aria-label": "next hit", onclick: () => this.step(1) });
    this.element = make("search", { class: "search" }, this.input, this.count, before, after);
    this.input.addEventListener("input", () => this.search(this.input.value));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.clear();
    });
  }

  clear() {
    this.input.value = "";
    this.search("");
    this.input.blur();
  }

  /** @param {string} query */
  search(query) {
    const sought = query.trim().toLowerCase();
    const { program } = this.view;
    /** @type {Set<string>} */ const lineHits = new Set();
    this.found = [];
    this.at = -1;
    if (sought) {
      for (const [at, file] of program.files.entries()) {
        for (const [i, text] of file.lines.entries()) {
          if (text.toLowerCase().includes(sought)) lineHits.add(`${at}:${file.first + i}`);
        }
      }
    }
    const hits = program.stages.map(
      (stage) => new Set(sought ? stage.lowered.flatMap((text, row) => (text.includes(sought) ? [row] : [])) : []),
    );
    for (const line of lineHits) this.found.push({ line });
    for (const [stage, rows] of hits.entries()) for (const row of rows) this.found.push({ stage, row });
    this.view.change({ query: sought, hits, lineHits });
    this.say();
  }

  say() {
    const { length } = this.found;
    if (!this.view.query) this.count.textContent = "";
    else if (this.at < 0) this.count.textContent = length ? counted(length, "hit") : "no hits";
    else this.count.textContent = `${this.at + 1} of ${length.toLocaleString("en")}`;
  }

  /** @param {number} by */
  step(by) {
    const { length } = this.found;
    if (!length) return;
    this.at = this.at < 0 ? this.first(by) : (this.at + by + length) % length;
    this.view.choose(this.found[this.at]);
    this.say();
  }

  /** Start at the stage that the reader looks at. @param {number} by */
  first(by) {
    if (by < 0) return this.found.length - 1;
    const here = this.found.findIndex((target) => isRow(target) && target.stage === this.view.focus);
    return Math.max(0, here);
  }
}
