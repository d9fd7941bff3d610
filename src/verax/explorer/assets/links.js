/**
 * What belongs to a row or to a source line, over all stages.
 *
 * From a row, `from` is followed up to the trace and down to what XLA made of it; operands
 * and users are one step away in its own stage.
 */

import { Program } from "./document.js";

export const SELF = 1;
export const OPERAND = 2;
export const USER = 4;
export const ORIGIN = 8;
export const RESULT = 16;

/** The kinds of links: class, sign in the gutter, and what a reader hears. */
export const LINKS = [
  { bit: SELF, name: "self", sign: "●", words: "chosen" },
  { bit: OPERAND, name: "operand", sign: "↑", words: "operand" },
  { bit: USER, name: "user", sign: "↓", words: "user" },
  { bit: ORIGIN, name: "origin", sign: "«", words: "origin" },
  { bit: RESULT, name: "result", sign: "»", words: "made from it" },
];

/** A row; with `rows` a group of which it is the first. @typedef {{stage: number, row: number, rows?: number[]}} RowTarget */
/** @typedef {{line: string}} LineTarget */
/** @typedef {RowTarget | LineTarget} Target */

/** Rows with their kinds of link, by stage; and source lines. */
export class Lit {
  /** @param {number} stages */
  constructor(stages) {
    /** @type {Map<number, number>[]} */
    this.rows = Array.from({ length: stages }, () => new Map());
    /** @type {Set<string>} */ this.lines = new Set();
  }

  /** @param {number} stage @param {number} row @param {number} bit */
  add(stage, row, bit) {
    const rows = this.rows[stage];
    rows.set(row, (rows.get(row) ?? 0) | bit);
  }

  /** The number of rows with a kind of link. @param {number} bit */
  count(bit) {
    let found = 0;
    for (const rows of this.rows) for (const bits of rows.values()) if (bits & bit) found++;
    return found;
  }
}

/** @param {Target | null} target @returns {target is RowTarget} */
export function isRow(target) {
  return target !== null && "row" in target;
}

/** @param {Target | null} left @param {Target | null} right */
export function sameTarget(left, right) {
  if (left === null || right === null) return left === right;
  if (isRow(left)) return isRow(right) && left.stage === right.stage && left.row === right.row && !left.rows === !right.rows;
  return !isRow(right) && left.line === right.line;
}

/**
 * All that belongs to a target.
 * @param {Program} program @param {Target | null} target @returns {Lit}
 */
export function litBy(program, target) {
  const lit = new Lit(program.stages.length);
  if (target === null) return lit;
  if (!isRow(target)) {
    lit.lines.add(target.line);
    for (const stage of program.stages) {
      for (const row of stage.byLine.get(target.line) ?? []) lit.add(stage.index, row, RESULT);
    }
    return lit;
  }
  const { stage: index, row } = target;
  const stage = program.stages[index];
  const rows = target.rows ?? [row];
  for (const each of rows) {
    for (const read of stage.uses(each)) lit.add(index, read, OPERAND);
    for (const user of stage.users(each)) lit.add(index, user, USER);
    lit.add(index, each, SELF);
    const line = stage.line(each);
    if (line !== null) lit.lines.add(line);
  }
  climb(program, index, new Set(rows), lit);
  descend(program, index, new Set(rows), lit);
  return lit;
}

/** @param {Program} program @param {number} index @param {Set<number>} rows @param {Lit} lit */
function climb(program, index, rows, lit) {
  const { parent } = program.stages[index];
  if (parent === null || rows.size === 0) return;
  const above = new Set();
  for (const row of rows) for (const origin of program.stages[index].origins(row)) above.add(origin);
  for (const row of above) {
    lit.add(parent, row, ORIGIN);
    const line = program.stages[parent].line(row);
    if (line !== null) lit.lines.add(line);
  }
  climb(program, parent, above, lit);
}

/** @param {Program} program @param {number} index @param {Set<number>} rows @param {Lit} lit */
function descend(program, index, rows, lit) {
  if (rows.size === 0) return;
  for (const child of program.childrenOf(index)) {
    const below = new Set();
    for (const row of rows) {
      for (const made of child.results(row, program.stages[index].size)) below.add(made);
    }
    for (const row of below) lit.add(child.index, row, RESULT);
    descend(program, child.index, below, lit);
  }
}
