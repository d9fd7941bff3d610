/**
 * Costs by source line: sums of what each row costs without the rows inside it.
 */

import { COSTS, Stage } from "./document.js";

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
