/**
 * The values of a run: measured for rows of one stage, and found from those of the others.
 */

import { Program, Stage } from "./document.js";
import { short } from "./elements.js";
import { isRow, ORIGIN, RESULT, SELF } from "./links.js";

/**
 * @typedef {{
 *   op: string, type: string, back: boolean, runs: number, least: number|null, greatest: number|null,
 *   mean: number|null, std: number|null, zeros: number, nans: number, infinite: number,
 *   first: number, bins: number[], notes: string,
 *   courses: {loop: string, at: number[], least: (number|null)[], greatest: (number|null)[], mean: (number|null)[], nans: number[]}[],
 * }} Value
 */

/** What colours of values can show, beside costs. */
export const WATCHES = ["range", "zeros", "NaN"];
const SPAN = 20;

/** The values of each row of a stage. @param {Program} program @param {Stage} stage @returns {Map<number, Value[]>} */
export function valuesOf(program, stage) {
  return measuresOf(program, stage, "watch");
}

/**
 * What a run has measured for each row of a stage: its values, or the digits it loses.
 * @param {Program} program @param {Stage} stage @param {"watch"|"digits"} kind @returns {Map<number, any[]>}
 */
export function measuresOf(program, stage, kind) {
  return stage.once(`measures of ${kind}`, () => {
    const note = program[kind];
    if (!note) return new Map();
    if (stage.index === note.stage) {
      return new Map(Object.entries(note.rows).map(([row, at]) => [Number(row), at.map((/** @type {number} */ i) => note.values[i])]));
    }
    return stage.index > note.stage ? fromOrigins(program, stage, kind) : fromResults(program, stage, kind);
  });
}

/**
 * A later row has the values of the last row it came from that has some; what moves the
 * results of a loop about comes from the loop, and has none.
 * @param {Program} program @param {Stage} stage @param {"watch"|"digits"} kind
 */
function fromOrigins(program, stage, kind) {
  const found = new Map();
  if (stage.parent === null) return found;
  const parent = program.stages[stage.parent];
  const before = measuresOf(program, parent, kind);
  for (let row = 0; row < stage.size; row++) {
    const origin = stage.origins(row).findLast((each) => before.has(each) && parent.foldable[each] <= stage.foldable[row]);
    if (origin !== undefined && stage.columns.kind[row] === 0) found.set(row, before.get(origin));
  }
  return found;
}

/** An earlier row has the values of a row made from it: of its own operation, if there is one. @param {Program} program @param {Stage} stage @param {"watch"|"digits"} kind */
function fromResults(program, stage, kind) {
  const found = new Map();
  for (const child of program.childrenOf(stage.index)) {
    const after = measuresOf(program, child, kind);
    for (let row = 0; row < stage.size; row++) {
      if (stage.columns.kind[row] !== 0 || found.has(row)) continue;
      const made = [...child.results(row, stage.size)].filter((each) => after.has(each));
      const same = made.find((each) => child.word("op", each) === stage.word("op", row)) ?? made[0];
      if (same !== undefined) found.set(row, after.get(same));
    }
  }
  return found;
}

/** The values of what belongs to a target. @param {import("./view.js").View} view @param {import("./links.js").Target} target @returns {Value[]} */
export function valuesAt(view, target) {
  const { program } = view;
  if (!program.watch) return [];
  const stage = program.stages[program.watch.stage];
  const own = valuesOf(program, stage);
  if (isRow(target) && target.stage === stage.index) return own.get(target.row) ?? [];
  const wanted = isRow(target) ? SELF | ORIGIN | RESULT : RESULT;
  const rows = [...view.lit.rows[stage.index]].filter(([, bits]) => bits & wanted).map(([row]) => row);
  return [...new Set(rows.sort((a, b) => a - b).flatMap((row) => own.get(row) ?? []))];
}

/** The values of each line. @param {Program} program @returns {Map<string, Value[]>} */
export function valuesByLine(program) {
  const stage = program.stages[program.watch?.stage ?? 0];
  return stage.once("valuesByLine", () => {
    /** @type {Map<string, Value[]>} */ const found = new Map();
    for (const [row, values] of valuesOf(program, stage)) {
      const line = stage.line(row);
      if (line !== null) found.set(line, [...(found.get(line) ?? []), ...values]);
    }
    return found;
  });
}

/** The largest magnitude among values, or null. @param {Value[]} values */
function magnitude(values) {
  const ends = values.flatMap(({ least, greatest }) => [least, greatest]).filter((end) => end !== null);
  return ends.length ? Math.max(...ends.map((end) => Math.abs(Number(end)))) : null;
}

/** @typedef {{share: number, text: string, title: string, tone?: string}} Heat */
/** @type {Heat} */
export const COLD = { share: 0, text: "", title: "" };

/** The heat of values. @param {string} kind @param {Value[]} values @returns {Heat} */
export function heatOfValues(kind, values) {
  if (!values.length) return COLD;
  if (kind === "NaN") {
    const count = values.reduce((sum, { nans, infinite }) => sum + nans + infinite, 0);
    return count ? { share: 1, text: short(count), title: `${count} NaN or infinite`, tone: "var(--hot)" } : COLD;
  }
  if (kind === "zeros") {
    const zeros = Math.max(...values.map((value) => value.zeros));
    return zeros ? { share: zeros, text: `${Math.max(1, Math.round(zeros * 100))}%`, title: `${(zeros * 100).toPrecision(3)} % zeros` } : COLD;
  }
  const most = magnitude(values);
  if (most === null) return { share: 1, text: "NaN", title: "no finite element", tone: "var(--hot)" };
  if (most === 0) return { share: 1, text: "0", title: "all zero", tone: "var(--cool)" };
  const far = Math.max(-1, Math.min(1, Math.log2(most) / SPAN));
  const tone = `color-mix(in srgb, var(${far > 0 ? "--hot" : "--cool"}) ${Math.round(Math.abs(far) * 100)}%, var(--mild))`;
  return { share: 1, text: numberText(most, 2), title: `up to ${numberText(most, 4)}`, tone };
}

/** A number of any size in few letters. @param {number|null} value @param {number} digits */
export function numberText(value, digits = 4) {
  if (value === null) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10 ** digits || size < 0.01) return value.toExponential(digits > 2 ? digits - 2 : 0).replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}
