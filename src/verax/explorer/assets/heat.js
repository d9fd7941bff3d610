/**
 * What the margin says of a row or a line: a cost, the values of a run, or lost digits.
 */

import { COSTS, Stage } from "./document.js";
import { DIGITS, heatOfLoss, lossesByLine, lossOfRow } from "./digits.js";
import { costText, short } from "./elements.js";
import { lineCosts, programCosts } from "./linecosts.js";
import { View } from "./view.js";
import { COLD, heatOfValues, valuesByLine, valuesOf, WATCHES } from "./watch.js";

/** The costs of lines that the reader asked for. @param {View} view */
export function shownCosts(view) {
  return view.ofStage ? lineCosts(view.program.stages[view.focus]) : programCosts(view.program);
}

/** The names of what the margin can show. @param {View} view */
export function heatsOf(view) {
  return [...COSTS.filter((cost) => view.program.knows(cost)), ...(view.program.watch ? WATCHES : []), ...(view.program.digits ? [DIGITS] : []), "off"];
}

/** @param {View} view @param {Stage} stage @param {number} row @returns {import("./watch.js").Heat} */
export function rowHeat(view, stage, row) {
  const { heat } = view;
  if (WATCHES.includes(heat)) return heatOfValues(heat, valuesOf(view.program, stage).get(row) ?? []);
  if (heat === DIGITS) return heatOfLoss(lossOfRow(view.program, stage, row));
  return costHeat(heat, heat === "off" ? 0 : (stage.cost(heat, row) ?? 0), stage.mostCost(heat));
}

/** @param {View} view @param {string} key @returns {import("./watch.js").Heat} */
export function lineHeat(view, key) {
  const { heat } = view;
  if (WATCHES.includes(heat)) return heatOfValues(heat, valuesByLine(view.program).get(key) ?? []);
  if (heat === DIGITS) return heatOfLoss(lossesByLine(view.program).get(key));
  const { byLine, most } = shownCosts(view);
  return costHeat(heat, byLine.get(key)?.[heat] ?? 0, most[heat] ?? 0);
}

/** @param {string} heat @param {number} cost @param {number} most @returns {import("./watch.js").Heat} */
function costHeat(heat, cost, most) {
  if (!cost) return COLD;
  const text = heat === "time" ? timeText(cost) : short(cost);
  return { share: Math.sqrt(most ? Math.min(1, cost / most) : 0), text, title: costText(heat, cost) };
}

/** @param {number} seconds */
function timeText(seconds) {
  return seconds >= 1e-3 ? `${(seconds * 1e3).toPrecision(2)}ms` : `${Math.round(seconds * 1e6)}µs`;
}

/** Show heat in the cell of a margin. @param {HTMLElement} bar @param {import("./watch.js").Heat} heat */
export function warmed(bar, heat) {
  bar.style.setProperty("--heat", `${heat.share * 100}%`);
  if (heat.tone) bar.style.setProperty("--tone", heat.tone);
  else bar.style.removeProperty("--tone");
  bar.textContent = heat.text;
  bar.title = heat.title;
}
