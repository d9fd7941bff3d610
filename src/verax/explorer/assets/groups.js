/**
 * Arguments in a row as one group with a head of its own, so that a page opens on its program.
 */

import { Stage } from "./document.js";
import { bytesText, counted } from "./elements.js";

const LEAST = 4;
const ARGUMENT = 1;
const CONSTANT_KIND = 2;
const HEAD_KIND = 4;

/** @typedef {{rows: number[], depth: number, text: string}} Group */

/**
 * The groups of a stage: neighbours in one program that are arguments or constants.
 * @param {Stage} stage @returns {Group[]}
 */
export function groupsOf(stage) {
  return stage.once("groups", () => {
    const { kind, inside, depth } = stage.columns;
    /** @type {Group[]} */ const groups = [];
    /** @type {number[]} */ let rows = [];
    const close = () => {
      if (rows.length >= LEAST) groups.push({ rows, depth: depth[rows[0]], text: titleOf(stage, rows) });
      rows = [];
    };
    for (let row = 0; row < stage.size; row++) {
      const given = kind[row] === ARGUMENT || kind[row] === CONSTANT_KIND;
      if (rows.length && (!given || inside[row] !== inside[rows[0]])) close();
      if (given) rows.push(row);
    }
    close();
    return groups;
  });
}

/** For each row of a group its number. @param {Stage} stage @returns {Map<number, number>} */
export function groupNumbers(stage) {
  return stage.once("groupNumbers", () => new Map(groupsOf(stage).flatMap(({ rows }, at) => rows.map((row) => [row, at]))));
}

/** "29 arguments and 2 constants, 1.2 MB". @param {Stage} stage @param {number[]} rows */
function titleOf(stage, rows) {
  const { kind, inside } = stage.columns;
  const outer = inside[rows[0]];
  const whole = outer < 0 || (kind[outer] === HEAD_KIND && inside[outer] < 0 && (stage.kind === "jaxpr" || stage.word("right", outer) === "@main"));
  const constants = rows.filter((row) => kind[row] === CONSTANT_KIND).length;
  const given = rows.length - constants;
  const words = [
    ...(given ? [counted(given, whole ? "argument" : "input")] : []),
    ...(constants ? [counted(constants, "constant")] : []),
  ];
  const size = rows.reduce((sum, row) => sum + stage.sizeOf(row), 0);
  return words.join(" and ") + (size ? `, ${bytesText(size)}` : "");
}
