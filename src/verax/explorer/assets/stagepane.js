/**
 * A pane that shows one stage at a time: tabs for the stages, rows or a graph below.
 */

import { bytesText, counted, make, secondsText, short } from "./elements.js";
import { Graph } from "./graph.js";
import { isRow } from "./links.js";
import { Rows } from "./rows.js";
import { View } from "./view.js";

/** What the rows of a stage that compute something are called. @type {Record<string, string>} */
const NOUNS = { jaxpr: "equation", stablehlo: "operation", hlo: "instruction" };

let panes = 0;

export class StagePane {
  /** @param {View} view @param {number} stage @param {{onClose: (pane: StagePane) => void}} options */
  constructor(view, stage, options) {
    this.view = view;
    this.name = `pane${panes++}`;
    this.stage = -1;
    this.form = "rows";
    /** @type {Map<number, Rows>} */ this.kept = new Map();
    this.tabs = view.program.stages.map((_, index) => this.tab(index));
    this.tabList = make("div", { class: "stages", role: "tablist", "aria-label": "stages" }, ...this.tabs);
    this.tabList.addEventListener("keydown", (event) => this.tabKey(event));
    this.body = make("div", { class: "pane-body", role: "tabpanel", id: `${this.name}-body` });
    this.bar = make("div", { class: "pane-bar" });
    const close = make("button", { class: "quiet close", text: "×", title: "close this pane", "aria-label": "close this pane", onclick: () => options.onClose(this) });
    this.element = make(
      "section",
      { class: "pane stage-pane", "aria-label": "stage" },
      make("div", { class: "tabs" }, this.tabList, close),
      this.bar,
      this.body,
    );
    this.element.addEventListener("focusin", () => this.view.focus === this.stage || this.view.change({ focus: this.stage }));
    this.unwatch = view.watch((changed) => this.update(changed));
    this.show(stage);
  }

  close() {
    this.unwatch();
    for (const rows of this.kept.values()) rows.close();
    this.graph?.close();
    this.element.remove();
  }

  /** @param {number} index */
  tab(index) {
    const stage = this.view.program.stages[index];
    const seconds = stage.seconds === null ? "" : ` · ${secondsText(stage.seconds)}`;
    return make(
      "button",
      {
        class: "tab",
        role: "tab",
        id: `${this.name}-tab${index}`,
        title: `${stage.title} · ${counted(stage.totals.equations ?? stage.size, NOUNS[stage.kind])}${seconds}`,
        onclick: () => this.show(index),
      },
      stage.name,
      make("span", { class: "badge" }),
    );
  }

  /** @param {KeyboardEvent} event */
  tabKey(event) {
    const last = this.tabs.length - 1;
    const moves = { ArrowRight: this.stage + 1, ArrowLeft: this.stage - 1, Home: 0, End: last };
    const next = moves[/** @type {keyof typeof moves} */ (event.key)];
    if (next === undefined) return;
    event.preventDefault();
    this.show(Math.max(0, Math.min(last, next)));
    this.tabs[this.stage].focus();
  }

  /** Show a stage. @param {number} index */
  show(index) {
    if (index === this.stage || !this.view.program.stages[index]) return;
    this.stage = index;
    for (const [at, tab] of this.tabs.entries()) {
      tab.setAttribute("aria-selected", String(at === index));
      tab.tabIndex = at === index ? 0 : -1;
      if (at === index) tab.setAttribute("aria-controls", this.body.id);
      else tab.removeAttribute("aria-controls");
    }
    this.body.setAttribute("aria-labelledby", this.tabs[index].id);
    this.fill();
    this.view.change({ focus: index });
  }

  /** @param {"rows"|"graph"} form */
  setForm(form) {
    this.form = form;
    this.fill();
  }

  /** The rows of the stage shown, kept while the pane is open so that folds stay. */
  get rows() {
    const found = this.kept.get(this.stage) ?? new Rows(this.view, this.view.program.stages[this.stage]);
    this.kept.set(this.stage, found);
    return found;
  }

  fill() {
    this.graph?.close();
    this.graph = undefined;
    if (this.form === "graph") {
      this.graph = new Graph(this.view, this.view.program.stages[this.stage]);
      this.body.replaceChildren(this.graph.element);
    } else {
      const { rows } = this;
      this.body.replaceChildren(rows.element);
      rows.list.fill();
      rows.list.decorate();
      rows.paintRuler();
      rows.revealLit();
    }
    this.fillBar();
    this.tabs[this.stage].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  fillBar() {
    const stage = this.view.program.stages[this.stage];
    const { totals } = stage;
    const forms = ["rows", "graph"].map((form) =>
      make("button", {
        class: "segment",
        text: form,
        "aria-pressed": String(this.form === form),
        onclick: () => this.setForm(/** @type {any} */ (form)),
      }),
    );
    const facts = [
      counted(totals.equations ?? stage.size, NOUNS[stage.kind]),
      totals.flops ? `${short(totals.flops)} flop` : "",
      stage.peak ? `peak ${bytesText(stage.peak.bytes)}` : "",
      stage.seconds === null ? "" : `made in ${secondsText(stage.seconds)}`,
    ].filter(Boolean);
    this.bar.replaceChildren(
      make("span", { class: "segments", role: "group", "aria-label": "form" }, ...forms),
      ...(this.form === "rows" ? this.rowTools(stage) : []),
      make("span", { class: "facts", text: facts.join(" · "), title: stage.title }),
    );
  }

  /** @param {import("./document.js").Stage} stage */
  rowTools(stage) {
    const tools = [];
    if (stage.foldable.includes(1) || this.rows.groups.length) {
      tools.push(
        make("button", { class: "quiet fold-all", text: "fold", title: "fold all nested programs", onclick: () => this.rows.foldAll(true) }),
        make("button", { class: "quiet unfold-all", text: "unfold", title: "unfold all nested programs", onclick: () => this.rows.foldAll(false) }),
      );
    }
    if (stage.gone.length) {
      const { rows } = this;
      const button = make("button", {
        class: "quiet show-gone",
        text: `−${stage.gone.length} gone`,
        title: `show the rows that ${stage.name} removed`,
        "aria-pressed": String(rows.showGone),
        onclick: () => {
          rows.setGone(!rows.showGone);
          button.setAttribute("aria-pressed", String(rows.showGone));
        },
      });
      tools.push(button);
    }
    return tools;
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (!changed.has("hits")) return;
    for (const [index, tab] of this.tabs.entries()) {
      const hits = this.view.hits[index].size;
      const badge = /** @type {HTMLElement} */ (tab.querySelector(".badge"));
      badge.textContent = hits ? short(hits) : "";
      badge.title = hits ? counted(hits, "hit") : "";
    }
  }

  /** Whether the choice is a row of the stage shown here. */
  get holdsChoice() {
    return isRow(this.view.chosen) && this.view.chosen.stage === this.stage;
  }
}
