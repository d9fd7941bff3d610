/**
 * What the reader looks at: one value that panes watch.
 *
 * Panes never talk to each other. They change this, and are told which names changed.
 */

import { Program } from "./document.js";
import { Hits } from "./hits.js";
import { isRow, Lit, litBy, sameTarget } from "./links.js";

/** @typedef {import("./links.js").Target} Target */

export class View {
  /** @param {Program} program */
  constructor(program) {
    this.program = program;
    /** @type {Target | null} */ this.chosen = null;
    /** @type {Target | null} */ this.hovered = null;
    /** @type {Lit} */ this.lit = new Lit(program.stages.length);
    this.heat = ["time", "flops", "bytes"].find((cost) => program.knows(cost)) ?? "off";
    this.query = "";
    /** @type {import("./hits.js").Hits[]} */ this.hits = program.stages.map(() => new Hits([]));
    /** @type {Set<string>} */ this.lineHits = new Set();
    /** The stage last looked at: tables and curves are about it. */
    this.focus = 0;
    this.step = -1;
    /** Whether costs of lines are those of that stage alone, not of the whole program. */
    this.ofStage = false;
    /** The stage that a part of the page asks to be shown. */
    this.asked = 0;
    /** @type {Set<(changed: Set<string>) => void>} */ this.watchers = new Set();
  }

  /** @param {(changed: Set<string>) => void} watcher */
  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** @param {Record<string, any>} values */
  change(values) {
    const changed = new Set(Object.keys(values));
    Object.assign(this, values);
    for (const watcher of [...this.watchers]) watcher(changed);
  }

  /** Choose a row or a line; null chooses nothing. @param {Target | null} target */
  choose(target, { reveal = true } = {}) {
    this.lit = litBy(this.program, target);
    /** @type {Record<string, any>} */
    const values = { chosen: target, hovered: null, lit: this.lit, reveal };
    if (isRow(target)) values.focus = target.stage;
    this.change(values);
  }

  /** @param {Target | null} target */
  hover(target) {
    if (sameTarget(target, this.hovered)) return;
    this.hovered = target;
    this.lit = litBy(this.program, target ?? this.chosen);
    this.change({ hovered: target, lit: this.lit });
  }

  /** Whether the last choice should scroll panes to it. */
  reveal = true;
}
