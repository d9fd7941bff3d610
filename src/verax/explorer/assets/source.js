/**
 * The user's source: the functions that some row names, with the heat of each line.
 */

import { coloured } from "./colours.js";
import { make } from "./elements.js";
import { lineHeat, warmed } from "./heat.js";
import { isRow } from "./links.js";
import { VirtualList } from "./list.js";
import { Ruler } from "./ruler.js";
import { View } from "./view.js";

const LINE_HEIGHT = 20;

/** @typedef {{head: string, path: string} | {key: string, number: number, text: string}} SourceLine */

export class Source {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    /** @type {SourceLine[]} */
    this.lines = view.program.files.flatMap((file, at, files) => [
      file.path === files[at - 1]?.path ? { head: "⋯", path: file.path } : { head: file.name, path: file.path },
      ...file.lines.map((text, i) => ({ key: `${at}:${file.first + i}`, number: file.first + i, text })),
    ]);
    /** @type {Map<string, number>} */
    this.places = new Map(this.lines.flatMap((line, i) => ("key" in line ? [[line.key, i]] : [])));
    this.list = new VirtualList({
      role: "listbox",
      label: "source",
      rowHeight: LINE_HEIGHT,
      build: (item, element) => this.build(item, element),
      decorate: (item, element) => this.decorate(item, element),
    });
    this.list.element.classList.add("source");
    this.ruler = new Ruler((share) => this.list.reveal(Math.floor(share * this.lines.length), true), () => this.paintRuler());
    /** What each element in sight shows. @type {WeakMap<HTMLElement, string>} */ this.dressed = new WeakMap();
    const body = make("div", { class: "listing" }, this.list.element, this.ruler.canvas);
    const head = make("div", { class: "tabs" }, make("h2", { class: "pane-title", text: "source" }));
    this.element = make("section", { class: "pane source-pane", "aria-label": "source" }, head, body);
    if (!this.lines.length) body.append(make("p", { class: "empty", text: "The source of this program is not known." }));
    this.listen();
    const letters = Math.max(20, ...this.lines.map((line) => ("key" in line ? line.text.length + 4 : 0)));
    this.list.setItems(this.lines.map((_, i) => i), letters);
    view.watch((changed) => this.update(changed));
  }

  listen() {
    const { element } = this.list;
    element.addEventListener("pointermove", (event) => this.view.hover(this.targetAt(this.list.indexOf(event))));
    element.addEventListener("pointerleave", () => this.view.hover(null));
    element.addEventListener("click", (event) => {
      const target = this.targetAt(this.list.indexOf(event));
      if (target) this.view.choose(target);
    });
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {number | null} index @returns {import("./links.js").LineTarget | null} */
  targetAt(index) {
    const line = index === null ? null : this.lines[index];
    return line && "key" in line ? { line: line.key } : null;
  }

  /** @param {number} item @param {HTMLElement} element */
  build(item, element) {
    this.dressed.delete(element);
    const line = this.lines[item];
    element.id = `source-${item}`;
    if ("head" in line) {
      element.className = "row file";
      element.setAttribute("role", "presentation");
      element.title = line.path;
      element.replaceChildren(make("span", { class: "file-name", text: line.head }));
      return;
    }
    element.setAttribute("role", "option");
    element.removeAttribute("title");
    element.replaceChildren(
      make("span", { class: "gutter" }, make("span", { class: "heat" }), make("span", { class: "number", text: line.number }), make("span", { class: "link" })),
      make("span", { class: "code" }, coloured(line.text, "python")),
    );
  }

  /** @param {number} item @param {HTMLElement} element */
  decorate(item, element) {
    const line = this.lines[item];
    if ("head" in line) return;
    const { view } = this;
    const chosen = view.chosen !== null && !isRow(view.chosen) && view.chosen.line === line.key;
    const lit = view.lit.lines.has(line.key);
    const hit = view.lineHits.has(line.key);
    const state = [lit, chosen, hit, view.heat, view.ofStage && view.focus].join();
    if (this.dressed.get(element) === state) return;
    this.dressed.set(element, state);
    element.classList.toggle("is-line", lit);
    element.classList.toggle("chosen", chosen);
    element.classList.toggle("hit", hit);
    element.setAttribute("aria-selected", String(chosen));
    const link = /** @type {HTMLElement} */ (element.querySelector(".link"));
    link.textContent = lit ? "●" : "";
    warmed(/** @type {HTMLElement} */ (element.querySelector(".heat")), lineHeat(view, line.key));
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (changed.has("chosen") && this.view.reveal) this.revealLit();
    if (["lit", "hits", "heat", "focus", "ofStage"].some((name) => changed.has(name))) {
      this.list.decorate();
      this.paintRuler();
    }
  }

  revealLit() {
    const places = [...this.view.lit.lines].flatMap((key) => this.places.get(key) ?? []);
    if (places.length && !places.some((place) => this.list.elementAt(place))) this.list.reveal(places[0]);
    else if (places.length) this.list.reveal(Math.min(...places));
  }

  paintRuler() {
    /** @type {[number, string, number][]} */ const marks = [];
    for (const key of this.view.lineHits) marks.push([this.places.get(key) ?? 0, "--hit", 1]);
    for (const key of this.view.lit.lines) marks.push([this.places.get(key) ?? 0, "--self", 0]);
    this.ruler.paint(this.lines.length, () => [], marks);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { chosen } = this.view;
    const here = chosen !== null && !isRow(chosen) ? (this.places.get(chosen.line) ?? -1) : -1;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: this.list.page, PageUp: -this.list.page };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (!step) return;
    event.preventDefault();
    let place = Math.max(0, Math.min(this.lines.length - 1, here + step));
    if ("head" in this.lines[place]) place = Math.max(0, Math.min(this.lines.length - 1, place + Math.sign(step)));
    const target = this.targetAt(place);
    if (!target) return;
    this.list.nudge(place);
    this.view.choose(target);
    this.list.element.setAttribute("aria-activedescendant", `source-${place}`);
  }
}
