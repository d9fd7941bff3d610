/**
 * Costs by source line: sums over the rows that hold no others.
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
    for (let row = 0; row < stage.size; row++) {
      const key = stage.line(row);
      const counts = key !== null && !stage.foldable[row] && stage.columns.kind[row] === 0;
      if (!counts) continue;
      const sums = byLine.get(key) ?? { rows: 0, flops: 0, bytes: 0, time: 0 };
      sums.rows++;
      for (const cost of COSTS) {
        sums[cost] += stage.cost(cost, row) ?? 0;
        most[cost] = Math.max(most[cost] ?? 0, sums[cost]);
      }
      byLine.set(key, sums);
    }
    return { byLine, most };
  });
}
