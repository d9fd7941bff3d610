/**
 * Panes side by side, with separators that pointer and arrow keys move.
 */

import { make } from "./elements.js";
import { isRow } from "./links.js";
import { Source } from "./source.js";
import { StagePane } from "./stagepane.js";
import { View } from "./view.js";

const MOST_PANES = 3;
const LEAST_SHARE = 0.12;

export class Workspace {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.source = new Source(view);
    /** @type {StagePane[]} */ this.panes = [];
    /** @type {number[]} */ this.shares = [];
    this.element = make("main", { class: "workspace", "aria-label": "source and stages" });
    const { stages } = view.program;
    const last = stages.length - 1;
    for (const stage of last > 0 ? [0, last] : [0]) this.open(stage);
    view.watch((changed) => {
      if (changed.has("chosen") && view.reveal) this.showChosen();
      if (changed.has("focus")) this.label();
      if (changed.has("asked")) this.showStages([view.asked]);
    });
    this.label();
  }

  /** @param {number} stage */
  open(stage) {
    if (this.panes.length >= MOST_PANES || !this.view.program.stages[stage]) return;
    this.panes.push(new StagePane(this.view, stage, { onClose: (pane) => this.closePane(pane) }));
    this.arrange();
  }

  /** One more pane, with a stage that none shows. */
  openNext() {
    const shown = new Set(this.panes.map((pane) => pane.stage));
    const free = this.view.program.stages.findIndex((stage) => !shown.has(stage.index));
    this.open(free < 0 ? 0 : free);
  }

  /** @param {StagePane} pane */
  closePane(pane) {
    if (this.panes.length < 2) return;
    pane.close();
    this.panes = this.panes.filter((other) => other !== pane);
    this.arrange();
  }

  arrange() {
    const sections = [this.source.element, ...this.panes.map((pane) => pane.element)];
    this.shares = [0.8, ...this.panes.map(() => 1)];
    const children = sections.flatMap((section, at) => (at ? [this.separator(at), section] : [section]));
    this.element.replaceChildren(...children);
    this.element.classList.toggle("one-pane", this.panes.length === 1);
    this.resize();
    this.label();
    for (const pane of this.panes) pane.fill();
  }

  /** Name the panes by their stages, and tell those of one stage apart. */
  label() {
    for (const [at, pane] of this.panes.entries()) {
      const again = this.panes.slice(0, at).some((other) => other.stage === pane.stage);
      const name = `stage ${this.view.program.stages[pane.stage].name}`;
      pane.element.setAttribute("aria-label", again ? `${name}, pane ${at + 1}` : name);
    }
  }

  resize() {
    this.element.style.gridTemplateColumns = this.shares.map((share) => `minmax(0, ${share}fr)`).join(" 5px ");
    const total = this.shares.reduce((sum, share) => sum + share, 0);
    for (const [at, separator] of this.element.querySelectorAll(":scope > .separator").entries()) {
      const before = this.shares.slice(0, at + 1).reduce((sum, share) => sum + share, 0);
      separator.setAttribute("aria-valuenow", String(Math.round((before / total) * 100)));
    }
  }

  /** @param {number} at  the number of the section after it */
  separator(at) {
    const element = make("div", {
      class: "separator",
      role: "separator",
      tabindex: 0,
      "aria-orientation": "vertical",
      "aria-label": "width of the pane before",
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": 50,
    });
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    element.addEventListener("pointermove", (event) => {
      if (element.hasPointerCapture(event.pointerId)) this.move(at, event.movementX / this.element.clientWidth);
    });
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.03, ArrowRight: 0.03 }[event.key];
      if (step) this.move(at, step);
    });
    return element;
  }

  /** @param {number} at @param {number} share  of the whole width */
  move(at, share) {
    const total = this.shares.reduce((sum, each) => sum + each, 0);
    const pair = this.shares[at - 1] + this.shares[at];
    const least = Math.min(LEAST_SHARE * total, pair / 2);
    const left = Math.max(least, Math.min(pair - least, this.shares[at - 1] + share * total));
    this.shares[at - 1] = left;
    this.shares[at] = pair - left;
    this.resize();
  }

  /** A chosen row must be seen: the pane used last shows its stage where none does. */
  showChosen() {
    const { chosen } = this.view;
    if (!isRow(chosen) || this.panes.some((pane) => pane.stage === chosen.stage)) return;
    const after = this.panes.filter((pane) => pane.stage <= chosen.stage).at(-1);
    (after ?? this.panes[0]).show(chosen.stage);
  }

  /** Stages side by side, as far as there are panes for them. @param {number[]} stages */
  showStages(stages) {
    if (stages.every((stage) => this.panes.some((pane) => pane.stage === stage))) return;
    for (const [at, stage] of stages.slice(0, this.panes.length).entries()) this.panes[at].show(stage);
  }

  /** The pane in which the reader last was. */
  get active() {
    const focused = this.panes.find((pane) => pane.element.contains(document.activeElement));
    return focused ?? this.panes.find((pane) => pane.stage === this.view.focus) ?? this.panes[0];
  }
}
