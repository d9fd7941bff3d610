/**
 * Costs by source line: sums of what each row costs without the rows inside it.
 */

import { COSTS, Program, Stage } from "./document.js";

/** @typedef {{rows: number, [cost: string]: number}} LineCost */

/**
 * @param {Stage | undefined} stage
 * @returns {{byLine: Map<string, LineCost>, most: Record<string, number>}}
 */
export function lineCosts(stage) {
  if (!stage) return { byLine: new Map(), most: {} };
  return stage.once("lineCosts", () => {
    const byLine = new Map();
    /** @type {Record<string, number>} */ const most = {};
    const inner = Object.fromEntries(COSTS.map((cost) => [cost, innerCosts(stage, cost)]));
    for (let row = 0; row < stage.size; row++) {
      const key = stage.line(row);
      if (key === null || stage.columns.kind[row] !== 0) continue;
      const sums = byLine.get(key) ?? { rows: 0, flops: 0, bytes: 0, time: 0 };
      if (!stage.foldable[row]) sums.rows++;
      for (const cost of COSTS) {
        if (!stage.sums(cost)[row]) sums[cost] += stage.cost(cost, row) ?? 0;
        most[cost] = Math.max(most[cost] ?? 0, sums[cost]);
      }
      byLine.set(key, sums);
    }
    return { byLine, most };
  });
}

/**
 * Costs by source line of the whole program. Where Python did not sum them up, they are
 * those of the last stage that knows them; times are those of the first, which has more lines.
 * @param {Program} program
 * @returns {{byLine: Map<string, LineCost>, most: Record<string, number>, totals: Record<string, number>}}
 */
export function programCosts(program) {
  program.summed ??= summedCosts(program);
  return program.summed;
}

/** @param {Program} program */
function summedCosts(program) {
  /** @type {Map<string, any>} */ const byLine = new Map();
  /** @type {Record<string, number>} */ const most = {};
  /** @type {Record<string, number>} */ const totals = {};
  const add = (/** @type {string} */ key, /** @type {string} */ cost, /** @type {number} */ value) => {
    const sums = byLine.get(key) ?? { rows: 0, flops: 0, bytes: 0, time: 0, back: 0, known: 1 };
    sums[cost] += value;
    if (cost in totals) most[cost] = Math.max(most[cost] ?? 0, sums[cost]);
    byLine.set(key, sums);
  };
  const { costs } = program.raw;
  if (costs) {
    Object.assign(totals, { flops: costs.flops, bytes: costs.bytes });
    const { file, line, flops, bytes, backward, known } = costs.lines;
    for (let i = 0; i < file.length; i++) {
      const key = `${file[i]}:${line[i]}`;
      add(key, "flops", flops[i]);
      add(key, "bytes", bytes[i]);
      if (backward[i]) add(key, "back", flops[i]);
      if (!known[i]) /** @type {any} */ (byLine.get(key)).known = 0;
    }
  }
  for (const cost of COSTS.filter((name) => !(name in totals))) {
    const order = cost === "time" ? program.stages : program.stages.toReversed();
    const stage = order.find((each) => lineCosts(each).most[cost]);
    if (!stage) continue;
    const found = lineCosts(stage).byLine;
    totals[cost] = [...found.values()].reduce((sum, each) => sum + each[cost], 0);
    for (const [key, sums] of found) add(key, cost, sums[cost]);
  }
  for (const [key, rows] of program.stages[0]?.byLine ?? []) add(key, "rows", rows.length);
  return { byLine, most, totals };
}

/**
 * For each row the costs of the equations right inside it.
 * @param {Stage} stage @param {string} cost @returns {Float64Array}
 */
function innerCosts(stage, cost) {
  const { inside, kind } = stage.columns;
  const sums = new Float64Array(stage.size);
  for (let row = 0; row < stage.size; row++) {
    if (kind[row] !== 0) continue;
    let outer = inside[row];
    while (outer >= 0 && kind[outer] !== 0) outer = inside[outer];
    if (outer >= 0) sums[outer] += stage.cost(cost, row) ?? 0;
  }
  return sums;
}
