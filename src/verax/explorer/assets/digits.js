/**
 * The digits that a run loses, beside a shadow in wider arithmetic: by row and by line.
 */

import { Program, Stage } from "./document.js";
import { numberText, COLD, measuresOf } from "./watch.js";

/** @typedef {{lost: number|null, of: number|null, error: number|null, decisions: number, own?: number|null, reason?: string, remedy?: string, alarm?: boolean, back?: boolean}} Loss */
/** @typedef {Loss & {file: number, line: number}} LineLoss */

export const DIGITS = "digits";
/** Fewer digits than this are no loss to speak of. */
const FEW = 0.1;
/** So many digits of a line are worth an alarm where Python says nothing. */
const MANY = 2;

/** The equation of a row that loses most, or null. @param {Program} program @param {Stage} stage @param {number} row @returns {Loss|null} */
export function lossOfRow(program, stage, row) {
  const losses = measuresOf(program, stage, "digits").get(row) ?? [];
  return losses.reduce((worst, loss) => (worst === null || (loss.lost ?? 0) > (worst.lost ?? 0) ? loss : worst), null);
}

/** The lines that lose most first. @param {Program} program @returns {Map<string, LineLoss>} */
export function lossesByLine(program) {
  program.lossesByLine ??= summed(program);
  return program.lossesByLine;
}

/** @param {Program} program */
function summed(program) {
  /** @type {Map<string, LineLoss>} */ const found = new Map();
  for (const loss of program.digits?.lines ?? []) {
    const key = `${loss.file}:${loss.line}`;
    if ((loss.lost ?? 0) > (found.get(key)?.lost ?? -1)) found.set(key, loss);
  }
  return found;
}

/** A loss in words. @param {Loss} loss */
export function lossText(loss) {
  const lost = (loss.lost ?? 0) < FEW ? "no digits lost" : `loses ${numberText(loss.lost, 2)} of ${numberText(loss.of, 2)} digits`;
  const made = loss.own === undefined ? [] : [`${numberText(loss.own, 2)} of its own`];
  const otherwise = loss.decisions ? [`${loss.decisions} decided otherwise`] : [];
  return [lost, `error ${numberText(loss.error, 2)}`, ...made, ...otherwise].join(" · ");
}

/** The reason and the remedy of a loss. @param {Loss} loss */
export function whyText({ reason, remedy }) {
  return [reason, remedy && `write ${remedy}`].filter(Boolean).join("; ");
}

/** @param {Loss|null|undefined} loss @returns {import("./watch.js").Heat} */
export function heatOfLoss(loss) {
  if (!loss || (loss.lost ?? 0) < FEW) return COLD;
  const lost = loss.lost ?? 0;
  const title = [lossText(loss), whyText(loss)].filter(Boolean).join(": ");
  const bad = loss.alarm ?? lost >= MANY;
  return { share: Math.min(1, lost / (loss.of || lost)), text: numberText(lost, 2), title, ...(bad ? { tone: "var(--hot)" } : {}) };
}
