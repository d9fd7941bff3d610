/**
 * Search over the source and all stages: hits are counted, marked and stepped through.
 */

import { counted, make } from "./elements.js";
import { Hits } from "./hits.js";
import { View } from "./view.js";

/** @param {import("./document.js").Stage} stage @param {string} sought */
function hitsIn(stage, sought) {
  /** @type {number[]} */ const rows = [];
  if (sought) stage.lowered.forEach((text, row) => text.includes(sought) && rows.push(row));
  return new Hits(rows);
}

export class Search {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    /** The number of hits, in the source and in all stages. */
    this.size = 0;
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
    this.at = -1;
    if (sought) {
      for (const [at, file] of program.files.entries()) {
        for (const [i, text] of file.lines.entries()) {
          if (text.toLowerCase().includes(sought)) lineHits.add(`${at}:${file.first + i}`);
        }
      }
    }
    const hits = program.stages.map((stage) => hitsIn(stage, sought));
    this.size = hits.reduce((sum, { size }) => sum + size, lineHits.size);
    this.view.change({ query: sought, hits, lineHits });
    this.say();
  }

  say() {
    const { size } = this;
    if (!this.view.query) this.count.textContent = "";
    else if (this.at < 0) this.count.textContent = size ? counted(size, "hit") : "no hits";
    else this.count.textContent = `${this.at + 1} of ${size.toLocaleString("en")}`;
  }

  /** @param {number} by */
  step(by) {
    const { size } = this;
    if (!size) return;
    this.at = this.at < 0 ? this.first(by) : (this.at + by + size) % size;
    this.view.choose(this.hit(this.at));
    this.say();
  }

  /** A hit by its number: those in the source come first. @param {number} at @returns {import("./links.js").Target} */
  hit(at) {
    const { hits, lineHits } = this.view;
    if (at < lineHits.size) return { line: [...lineHits][at] };
    let left = at - lineHits.size;
    let stage = 0;
    while (left >= hits[stage].size) left -= hits[stage++].size;
    return { stage, row: hits[stage].rows[left] };
  }

  /** Start at the stage that the reader looks at. @param {number} by */
  first(by) {
    if (by < 0) return this.size - 1;
    const { hits, lineHits, focus } = this.view;
    if (!hits[focus]?.size) return 0;
    return hits.slice(0, focus).reduce((sum, { size }) => sum + size, lineHits.size);
  }
}
