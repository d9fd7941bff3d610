/**
 * The rows of one stage: gutters, folds, links, and the rows that a rewrite removed.
 *
 * The list shows items: a row is its number, a removed row of the parent is -1 - number, and
 * the head of a group of arguments is the number of rows and that of the group.
 */

import { coloured } from "./colours.js";
import { CHANGES, KINDS, Stage } from "./document.js";
import { make } from "./elements.js";
import { groupNumbers, groupsOf } from "./groups.js";
import { rowHeat, warmed } from "./heat.js";
import { isRow, LINKS, OPERAND, ORIGIN, RESULT, sameTarget, SELF, USER } from "./links.js";
import { VirtualList } from "./list.js";
import { Ruler } from "./ruler.js";
import { View } from "./view.js";

const ROW_HEIGHT = 20;
const SIGNS = ["", "+", "~"];
const RULED = [
  [SELF, "--self"],
  [OPERAND, "--operand"],
  [USER, "--user"],
  [ORIGIN, "--origin"],
  [RESULT, "--result"],
];

let lists = 0;

export class Rows {
  /** @param {View} view @param {Stage} stage */
  constructor(view, stage) {
    this.view = view;
    this.stage = stage;
    this.name = `list${lists++}`;
    /** @type {Set<number>} */ this.folded = new Set(stage.kind === "hlo" ? fusions(stage) : []);
    this.groups = groupsOf(stage);
    this.groupOf = groupNumbers(stage);
    /** The groups that are open. @type {Set<number>} */ this.openGroups = new Set();
    this.showGone = false;
    this.list = new VirtualList({
      role: "tree",
      label: `${stage.name}: ${stage.title}`,
      rowHeight: ROW_HEIGHT,
      build: (item, element, index) => this.build(item, element, index),
      decorate: (item, element) => this.decorate(item, element),
    });
    this.list.element.classList.add("rows");
    this.ruler = new Ruler((share) => this.list.reveal(Math.floor(share * this.items.length), true), () => this.paintRuler());
    this.element = make("div", { class: "listing" }, this.list.element, this.ruler.canvas);
    /** @type {Int32Array} */ this.items = new Int32Array(0);
    /** @type {Map<number, number>} */ this.places = new Map();
    /** What each element in sight shows, so that only others are dressed again. @type {WeakMap<HTMLElement, string>} */
    this.dressed = new WeakMap();
    /** The links of what is folded inside rows, for the lit rows of `foldedOf`. @type {Map<number, number>} */
    this.foldedBits = new Map();
    /** @type {Map<number, number> | null} */ this.foldedOf = null;
    this.listen();
    this.layOut();
    this.unwatch = view.watch((changed) => this.update(changed));
  }

  close() {
    this.unwatch();
    this.element.remove();
  }

  listen() {
    const { element } = this.list;
    element.addEventListener("pointermove", (event) => this.view.hover(this.targetOf(event)));
    element.addEventListener("pointerleave", () => this.view.hover(null));
    element.addEventListener("click", (event) => {
      const index = this.list.indexOf(event);
      if (index === null) return;
      const item = this.items[index];
      const twist = event.target instanceof Element && event.target.closest(".twist");
      if (twist && this.folds(item)) this.toggle(item);
      else this.view.choose(this.targetOf(event));
    });
    element.addEventListener("dblclick", (event) => {
      const index = this.list.indexOf(event);
      if (index !== null) this.toggle(this.items[index]);
    });
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {Event} event @returns {import("./links.js").Target | null} */
  targetOf(event) {
    const index = this.list.indexOf(event);
    return index === null ? null : this.target(this.items[index]);
  }

  /** @param {number} item @returns {import("./links.js").RowTarget} */
  target(item) {
    const group = this.groups[item - this.stage.size];
    if (group) return { stage: this.stage.index, row: group.rows[0], rows: group.rows };
    if (item >= 0) return { stage: this.stage.index, row: item };
    return { stage: this.stage.parent ?? 0, row: -1 - item };
  }

  /** Whether an item folds. @param {number} item */
  folds(item) {
    return item >= this.stage.size || this.stage.foldable[item] === 1;
  }

  /** Which rows are shown, after folds and the removed rows of the parent. */
  layOut() {
    const { stage } = this;
    const { inside } = stage.columns;
    const hidden = new Uint8Array(stage.size);
    const after = this.showGone ? this.gonePlaces() : new Map();
    const items = [...(after.get(-1) ?? [])];
    for (let row = 0; row < stage.size; row++) {
      const outer = inside[row];
      if (outer >= 0 && (hidden[outer] || this.folded.has(outer))) hidden[row] = 1;
      else items.push(...this.itemsOf(row));
      for (const gone of after.get(row) ?? []) items.push(gone);
    }
    this.items = Int32Array.from(items);
    this.places = new Map(items.map((item, index) => [item, index]));
    this.foldedOf = null;
    this.ruler.forget();
    this.list.setItems(this.items, stage.width);
    this.paintRuler();
  }

  /** A row, after the head of its group if it is the first; nothing if the group is folded. @param {number} row */
  itemsOf(row) {
    const group = this.groupOf.get(row);
    if (group === undefined) return [row];
    const head = this.groups[group].rows[0] === row ? [this.stage.size + group] : [];
    return this.openGroups.has(group) ? [...head, row] : head;
  }

  /** Removed rows of the parent, by the row after which they are shown. */
  gonePlaces() {
    const { stage, view } = this;
    const parent = view.program.stages[stage.parent ?? 0];
    const gone = new Set(stage.gone);
    /** @type {Map<number, number[]>} */ const places = new Map();
    let last = -1;
    for (let row = 0; row < parent.size; row++) {
      for (const made of stage.results(row, parent.size)) last = Math.max(last, made);
      if (!gone.has(row)) continue;
      places.set(last, [...(places.get(last) ?? []), -1 - row]);
    }
    return places;
  }

  /** @param {number} item @param {HTMLElement} element @param {number} index */
  build(item, element, index) {
    this.dressed.delete(element);
    if (item < 0) return this.buildGone(-1 - item, element);
    const { stage } = this;
    if (item >= stage.size) return this.buildGroup(item, element, index);
    const depth = stage.columns.depth[item] + (this.groupOf.has(item) ? 1 : 0);
    const change = stage.columns.change[item];
    const kind = KINDS[stage.columns.kind[item]];
    const folds = stage.foldable[item] === 1;
    const open = folds && !this.folded.has(item);
    element.className = `row kind-${kind} change-${CHANGES[change]}`;
    element.id = `${this.name}-${item}`;
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", String(depth + 1));
    element.setAttribute("aria-posinset", String(index + 1));
    element.setAttribute("aria-setsize", String(this.items.length));
    if (folds) element.setAttribute("aria-expanded", String(open));
    else element.removeAttribute("aria-expanded");
    element.removeAttribute("title");
    element.replaceChildren(
      gutter(item + 1, SIGNS[change], change ? `${CHANGES[change]} in this stage` : ""),
      make("span", { class: "twist", text: folds ? (open ? "▾" : "▸") : "", style: `margin-left:${depth * 2}ch` }),
      this.code(stage, item),
    );
    const note = stage.note(item);
    if (note) element.lastChild?.appendChild(make("span", { class: "note", text: note }));
  }

  /** The head of a group. @param {number} item @param {HTMLElement} element @param {number} index */
  buildGroup(item, element, index) {
    const { depth, text } = this.groups[item - this.stage.size];
    const open = this.openGroups.has(item - this.stage.size);
    element.className = "row kind-group";
    element.id = `${this.name}-${item}`;
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", String(depth + 1));
    element.setAttribute("aria-posinset", String(index + 1));
    element.setAttribute("aria-setsize", String(this.items.length));
    element.setAttribute("aria-expanded", String(open));
    element.removeAttribute("title");
    element.replaceChildren(
      gutter("", "", ""),
      make("span", { class: "twist", text: open ? "▾" : "▸", style: `margin-left:${depth * 2}ch` }),
      make("span", { class: "code", text }),
    );
  }

  /** A row that the stage removed. @param {number} row @param {HTMLElement} element */
  buildGone(row, element) {
    const parent = this.view.program.stages[this.stage.parent ?? 0];
    element.className = "row change-gone";
    element.id = `${this.name}-gone-${row}`;
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", String(parent.columns.depth[row] + 1));
    element.removeAttribute("aria-expanded");
    element.title = `removed by ${this.stage.name}`;
    element.replaceChildren(
      gutter("", "−", "not in this stage"),
      make("span", { class: "twist", style: `margin-left:${parent.columns.depth[row] * 2}ch` }),
      this.code(parent, row),
    );
  }

  /** @param {Stage} stage @param {number} row */
  code(stage, row) {
    const left = stage.word("left", row);
    const op = stage.word("op", row);
    const text = stage.text(row);
    const start = left && op ? left.length + 3 : left.length;
    const code = make("span", { class: "code" }, coloured(left));
    if (left && op) code.append(make("span", { class: "equals", text: " = " }));
    if (op) code.append(make("span", { class: "op", text: op }));
    const rest = coloured(text.slice(start + op.length));
    code.append(stage.columns.kind[row] === 1 ? make("span", { class: "argument" }, rest) : rest);
    return code;
  }

  /** Links, hits, heat and the choice of a row in sight. @param {number} item @param {HTMLElement} element */
  decorate(item, element) {
    const { view, stage } = this;
    const target = this.target(item);
    const bits = item >= 0 ? this.bitsOf(item) : (view.lit.rows[target.stage].get(target.row) ?? 0);
    const chosen = sameTarget(view.chosen, target);
    const hits = view.hits[target.stage];
    const hit = target.rows ? !this.openGroups.has(item - stage.size) && target.rows.some((row) => hits.has(row)) : hits.has(target.row);
    const step = item >= 0 ? this.stepOf(item) : -1;
    const state = [bits, chosen, hit, step, step === view.step, view.heat].join();
    if (this.dressed.get(element) === state) return;
    this.dressed.set(element, state);
    const found = LINKS.filter(({ bit }) => bits & bit);
    for (const { name } of LINKS) element.classList.toggle(`is-${name}`, found.some((l) => l.name === name));
    element.classList.toggle("chosen", chosen);
    element.classList.toggle("hit", hit);
    element.setAttribute("aria-selected", String(chosen));
    element.classList.toggle("path", step >= 0);
    element.classList.toggle("step", step >= 0 && step === view.step);
    const link = /** @type {HTMLElement} */ (element.querySelector(".link"));
    link.textContent = step >= 0 ? String(step + 1) : (found[0]?.sign ?? "");
    const words = found.map((each) => each.words);
    link.title = [...(step >= 0 ? [`step ${step + 1} of the story`] : []), ...words].join(", ");
    this.warm(item, element);
  }

  /** The kinds of a row's links, or of what is folded inside it. @param {number} row */
  bitsOf(row) {
    const lit = this.view.lit.rows[this.stage.index];
    const holds = row >= this.stage.size || this.folded.has(row);
    return (lit.get(row) ?? 0) | (holds ? (this.foldedLit().get(row) ?? 0) : 0);
  }

  /** For folded rows the kinds of links inside them. */
  foldedLit() {
    const lit = this.view.lit.rows[this.stage.index];
    if (this.foldedOf !== lit) {
      this.foldedOf = lit;
      this.foldedBits = new Map();
      for (const [row, bits] of lit) {
        const shown = this.shownOf(row);
        if (shown !== row) this.foldedBits.set(shown, (this.foldedBits.get(shown) ?? 0) | bits);
      }
    }
    return this.foldedBits;
  }

  /** The row itself, or what it is folded into: the outermost row, or its group. @param {number} row */
  shownOf(row) {
    const { inside } = this.stage.columns;
    let shown = row;
    for (let outer = inside[row]; outer >= 0; outer = inside[outer]) if (this.folded.has(outer)) shown = outer;
    const group = this.groupOf.get(row);
    if (shown === row && group !== undefined && !this.openGroups.has(group)) return this.stage.size + group;
    return shown;
  }

  /** The step of the story that is this row, or -1. @param {number} row */
  stepOf(row) {
    const steps = this.stage.once("steps", () => {
      const found = new Map();
      for (const [step, { rows }] of this.view.program.steps.entries()) {
        for (const [stage, at] of rows) if (stage === this.stage.index && !found.has(at)) found.set(at, step);
      }
      return found;
    });
    return steps.get(row) ?? -1;
  }

  /** The heat of a row. @param {number} item @param {HTMLElement} element */
  warm(item, element) {
    warmed(/** @type {HTMLElement} */ (element.querySelector(".heat")), rowHeat(this.view, this.stage, item));
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (!this.element.isConnected) return; // its pane brings it up to date when it shows it
    if (changed.has("chosen") && this.view.reveal) this.revealLit();
    const marks = ["chosen", "hovered", "lit", "hits", "heat", "step"];
    if (marks.some((name) => changed.has(name))) {
      this.list.decorate();
      this.paintRuler();
    }
  }

  /** Scroll to the chosen row, or to the first one that belongs to it. */
  revealLit() {
    const { chosen, lit } = this.view;
    const { index } = this.stage;
    if (chosen === null) return;
    const own = isRow(chosen) && chosen.stage === index;
    const rows = own ? [chosen.row] : [...lit.rows[index].keys()].sort((a, b) => a - b);
    if (rows.length === 0) return;
    if (own && !chosen.rows) this.unfoldAround(chosen.row);
    const places = rows.map((row) => this.places.get(this.shownOf(row)) ?? -1).filter((p) => p >= 0);
    const { scrollTop, clientHeight } = this.list.element;
    const inSight = places.some((p) => p * ROW_HEIGHT >= scrollTop && (p + 1) * ROW_HEIGHT <= scrollTop + clientHeight);
    if (places.length && !inSight) this.list.reveal(places[0]);
    this.describeActive();
  }

  /** @param {number} row */
  unfoldAround(row) {
    const { inside } = this.stage.columns;
    let opened = false;
    for (let outer = inside[row]; outer >= 0; outer = inside[outer]) {
      opened = this.folded.delete(outer) || opened;
    }
    const group = this.groupOf.get(row);
    if (group !== undefined && !this.openGroups.has(group)) {
      this.openGroups.add(group);
      opened = true;
    }
    if (opened) this.layOut();
  }

  /** The item that is chosen here; of a group its head; NaN if there is none. */
  chosenItem() {
    const { chosen } = this.view;
    if (!isRow(chosen) || chosen.stage !== this.stage.index) return NaN;
    const group = chosen.rows ? this.groupOf.get(chosen.row) : undefined;
    return group === undefined ? chosen.row : this.stage.size + group;
  }

  describeActive() {
    const item = this.chosenItem();
    const { element } = this.list;
    if (this.places.has(item)) element.setAttribute("aria-activedescendant", `${this.name}-${item}`);
    else element.removeAttribute("aria-activedescendant");
  }

  paintRuler() {
    const { view, stage } = this;
    this.ruler.paint(this.items.length, () => this.changes(), this.marks(view.lit.rows[stage.index], view.hits[stage.index]));
  }

  /** @returns {Generator<[number, string, number]>} */
  *changes() {
    const { change } = this.stage.columns;
    for (let index = 0; index < this.items.length; index++) {
      const item = this.items[index];
      if (item < 0) yield [index, "--gone", 2];
      else if (item < this.stage.size && change[item]) yield [index, change[item] === 1 ? "--new" : "--changed", 2];
    }
  }

  /** @param {Map<number, number>} lit @param {import("./hits.js").Hits} hits @returns {Generator<[number, string, number]>} */
  *marks(lit, hits) {
    for (const row of hits) yield [this.places.get(this.shownOf(row)) ?? 0, "--hit", 1];
    for (const [row, bits] of lit) {
      const [, name] = RULED.find(([bit]) => bits & Number(bit)) ?? [];
      yield [this.places.get(this.shownOf(row)) ?? 0, String(name), 0];
    }
  }

  /** Fold or unfold a row. @param {number} row */
  toggle(row) {
    if (row < 0 || !this.folds(row)) return;
    const [kept, at] = row < this.stage.size ? [this.folded, row] : [this.openGroups, row - this.stage.size];
    if (!kept.delete(at)) kept.add(at);
    this.layOut();
    this.describeActive();
  }

  /** @param {boolean} fold  fold all nested programs, or unfold them */
  foldAll(fold) {
    this.folded.clear();
    this.openGroups = new Set(fold ? [] : this.groups.keys());
    if (fold) for (let row = 0; row < this.stage.size; row++) if (this.stage.foldable[row]) this.folded.add(row);
    this.layOut();
  }

  /** @param {boolean} show */
  setGone(show) {
    this.showGone = show;
    this.layOut();
  }

  /** Arrows, Home and End choose; right, left and Enter fold. @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = this.chosenItem();
    const here = item >= 0 ? item : -1;
    const place = here >= 0 ? (this.places.get(here < this.stage.size ? this.shownOf(here) : here) ?? -1) : -1;
    const last = this.items.length - 1;
    const moves = {
      ArrowDown: place + 1,
      ArrowUp: Math.max(0, place - 1),
      Home: 0,
      End: last,
      PageDown: place + this.list.page,
      PageUp: place - this.list.page,
    };
    if (event.key in moves) {
      this.moveTo(Math.max(0, Math.min(last, moves[/** @type {keyof typeof moves} */ (event.key)])));
    } else if (here >= 0 && !this.foldKey(event.key, here)) return;
    else if (here < 0) return;
    event.preventDefault();
  }

  /** @param {string} key @param {number} row @returns {boolean} whether the key means something */
  foldKey(key, row) {
    const { size, columns } = this.stage;
    const folds = this.folds(row);
    const open = row < size ? !this.folded.has(row) : this.openGroups.has(row - size);
    const group = this.groupOf.get(row);
    const outer = group !== undefined ? size + group : columns.inside[row < size ? row : this.groups[row - size].rows[0]];
    if (key === "Enter" || key === " ") this.toggle(row);
    else if (key === "ArrowRight" && folds && !open) this.toggle(row);
    else if (key === "ArrowRight" && folds) this.moveTo((this.places.get(row) ?? 0) + 1);
    else if (key === "ArrowLeft" && folds && open) this.toggle(row);
    else if (key === "ArrowLeft" && outer >= 0) this.moveTo(this.places.get(outer) ?? 0);
    else return false;
    return true;
  }

  /** @param {number} place */
  moveTo(place) {
    if (!this.items.length) return;
    this.list.nudge(place);
    this.view.choose(this.target(this.items[place]));
    this.describeActive();
  }
}

/** The rows of fused computations, which start folded. @param {Stage} stage */
function* fusions(stage) {
  for (let row = 0; row < stage.size; row++) {
    if (stage.foldable[row] && stage.word("op", row) === "fusion") yield row;
  }
}

/** What stays in place when long rows are scrolled. @param {string|number} number @param {string} sign @param {string} title */
function gutter(number, sign, title) {
  return make(
    "span",
    { class: "gutter" },
    make("span", { class: "heat" }),
    make("span", { class: "number", text: number, "aria-hidden": "true" }),
    make("span", { class: "change", text: sign, title: title || undefined }),
    make("span", { class: "link" }),
  );
}
