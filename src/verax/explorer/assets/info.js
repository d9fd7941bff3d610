/**
 * What is known of the chosen row: its text, line, costs, links, and how it changed.
 */

import { coloured } from "./colours.js";
import { CHANGES, COSTS, Stage } from "./document.js";
import { bytesText, clipped, costText, counted, make } from "./elements.js";
import { lossesByLine, lossOfRow, lossText, whyText } from "./digits.js";
import { isRow } from "./links.js";
import { summary } from "./summary.js";
import { valueCards } from "./valuecard.js";
import { View } from "./view.js";
import { valuesAt, valuesByLine } from "./watch.js";

const MOST_LINKS = 12;

export class Info {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.element = make("div", { class: "info" });
    view.watch((changed) => changed.has("chosen") && this.fill());
    this.fill();
  }

  fill() {
    const { chosen } = this.view;
    if (chosen === null) this.element.replaceChildren(summary(this.view));
    else if (isRow(chosen) && chosen.rows) this.element.replaceChildren(...this.aboutGroup(this.view.program.stages[chosen.stage], chosen.rows));
    else if (isRow(chosen)) this.element.replaceChildren(...this.aboutRow(this.view.program.stages[chosen.stage], chosen.row));
    else this.element.replaceChildren(...this.aboutLine(chosen.line));
  }

  /** The largest of several arguments. @param {Stage} stage @param {number[]} rows */
  aboutGroup(stage, rows) {
    const size = rows.reduce((sum, row) => sum + stage.sizeOf(row), 0);
    const largest = [...rows].sort((a, b) => stage.sizeOf(b) - stage.sizeOf(a) || a - b);
    const text = `${counted(rows.length, "input")}${size ? `, ${bytesText(size)}` : ""}`;
    return [
      make("div", { class: "info-code" }, make("span", { class: "info-place", text: stage.name }), text),
      make("dl", { class: "facts-list" }, ...this.links("largest", stage, largest)),
    ];
  }

  /** @param {string} key */
  aboutLine(key) {
    const { program } = this.view;
    const rows = program.stages.flatMap((stage) => {
      const found = stage.byLine.get(key) ?? [];
      return found.length ? [this.links(stage.name, stage, found)] : [];
    });
    return [
      make("div", { class: "info-code" }, make("span", { class: "info-place", text: program.place(key) }), coloured(program.sourceText(key), "python")),
      ...valueCards(valuesAt(this.view, { line: key })),
      ...this.digits(lossesByLine(program).get(key)),
      make("dl", { class: "facts-list" }, ...rows.flat()),
    ];
  }

  /** @param {Stage} stage @param {number} row */
  aboutRow(stage, row) {
    const code = make("div", { class: "info-code" }, make("span", { class: "info-place", text: `${stage.name} ${row + 1}` }), coloured(stage.text(row)));
    const { parent } = stage;
    const origins = stage.origins(row);
    if (stage.columns.change[row] === 2 && parent !== null && origins.length) {
      const before = this.view.program.stages[parent];
      code.prepend(make("div", { class: "info-before" }, make("span", { class: "info-place", text: `was, in ${before.name}` }), coloured(before.text(origins[0]))));
    }
    const columns = [this.facts(stage, row), this.neighbours(stage, row)].map((items) => make("dl", { class: "facts-list" }, ...items));
    return [code, ...this.cards(stage, row), make("div", { class: "info-columns" }, ...columns)];
  }

  /** The values of a row, or else those that leave its line. @param {Stage} stage @param {number} row */
  cards(stage, row) {
    const own = valuesAt(this.view, { stage: stage.index, row });
    const line = stage.line(row);
    if (own.length || !this.view.program.watch || line === null) return valueCards(own);
    const around = valuesByLine(this.view.program).get(line) ?? [];
    if (!around.length) return [];
    return [make("p", { class: "more", text: "This row was not measured; what leaves its line:" }), ...valueCards(around)];
  }

  /** The digits that a line loses, in words. @param {import("./digits.js").Loss|undefined} loss */
  digits(loss) {
    if (!loss) return [];
    const why = whyText(loss);
    return [make("p", { class: loss.alarm ? "value-notes bad-words" : "value-notes", text: why ? `${lossText(loss)}: ${why}` : lossText(loss) })];
  }

  /** @param {Stage} stage @param {number} row */
  facts(stage, row) {
    /** @type {Node[]} */ const facts = [];
    const fact = (/** @type {string} */ name, /** @type {Node|string} */ value) => {
      if (value) facts.push(make("dt", { text: name }), make("dd", {}, value));
    };
    const line = stage.line(row);
    if (line !== null) fact("line", this.lineButton(line));
    fact("scope", stage.word("scope", row));
    if (stage.parent !== null) fact("change", `${CHANGES[stage.columns.change[row]]} in ${stage.name}`);
    const costs = COSTS.flatMap((cost) => costText(cost, stage.cost(cost, row)) || []);
    fact("costs", costs.join(" · "));
    const loss = lossOfRow(this.view.program, stage, row);
    fact("digits", loss ? lossText(loss) : "");
    const live = stage.columns.live[row];
    if (live !== null && live !== undefined) fact("alive after it", bytesText(live));
    fact("notes", stage.note(row));
    return facts;
  }

  /** @param {Stage} stage @param {number} row @returns {Node[]} */
  neighbours(stage, row) {
    const { program } = this.view;
    const parent = stage.parent === null ? null : program.stages[stage.parent];
    return [
      ...this.links("reads", stage, stage.uses(row)),
      ...this.links("read by", stage, [...stage.users(row)]),
      ...(parent ? this.links("made from", parent, stage.origins(row)) : []),
      ...program.childrenOf(stage.index).flatMap((child) => this.links("became", child, [...child.results(row, stage.size)])),
    ];
  }

  /** @param {string} line */
  lineButton(line) {
    const { program } = this.view;
    const text = `${program.place(line)}  ${program.sourceText(line).trim()}`;
    return make("button", { class: "jump", text, onclick: () => this.view.choose({ line }) });
  }

  /** @param {string} name @param {Stage} stage @param {number[]} rows @returns {Node[]} */
  links(name, stage, rows) {
    if (!rows.length) return [];
    const buttons = rows.slice(0, MOST_LINKS).map((row) =>
      make("button", {
        class: "jump",
        text: clipped(`${stage.name} ${row + 1}  ${stage.text(row)}`, 70),
        title: stage.text(row),
        onclick: () => this.view.choose({ stage: stage.index, row }),
      }),
    );
    const more = rows.length > MOST_LINKS ? [make("span", { class: "more", text: `and ${counted(rows.length - MOST_LINKS, "row")} more` })] : [];
    return [make("dt", { text: name }), make("dd", {}, ...buttons, ...more)];
  }
}
