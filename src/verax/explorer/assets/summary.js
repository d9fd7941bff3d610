/**
 * What matters of a program, while nothing is chosen: what costs most, what takes memory,
 * how large the stages are, and which values of a run are worth a look.
 */

import { coloured } from "./colours.js";
import { bytesText, clipped, costText, counted, make, short } from "./elements.js";
import { lossesByLine, lossText, whyText } from "./digits.js";
import { programCosts } from "./linecosts.js";
import { valuesByLine } from "./watch.js";
import { View } from "./view.js";

const FIRST = 3;
/** So many holders of a peak are listed at most. */
const LISTED = 40;

/** @param {View} view @returns {HTMLElement} */
export function summary(view) {
  const parts = [costly(view), large(view), notable(view), lossy(view), stageSizes(view)].filter((part) => part !== null);
  if (!parts.length) return make("p", { class: "empty", text: "Choose a row or a source line to see what belongs to it." });
  return make("div", { class: "summary" }, ...parts);
}

/** @param {string} title @param {HTMLElement[]} items */
function part(title, items) {
  return make("section", {}, make("h3", { text: title }), make("ol", {}, ...items.map((item) => make("li", {}, item))));
}

/** @param {string} amount @param {number} share @param {(Node|string)[]} words @param {() => void} act @param {string} [title] */
function entry(amount, share, words, act, title) {
  return make(
    "button",
    { class: "jump entry", style: `--heat:${Math.min(1, share) * 100}%`, title, onclick: act },
    ...(amount ? [make("span", { class: "amount", text: amount })] : []),
    make("span", { class: "entry-text" }, ...words),
  );
}

/** The lines that cost most. @param {View} view */
function costly(view) {
  const { program } = view;
  const { byLine, totals } = programCosts(program);
  const cost = ["time", "flops", "bytes"].find((name) => totals[name] > 0);
  if (!cost) return null;
  const lines = [...byLine].filter(([, sums]) => sums[cost]).sort((a, b) => b[1][cost] - a[1][cost]);
  const items = lines.slice(0, FIRST).map(([key, sums]) =>
    entry(
      `${Math.round((100 * sums[cost]) / totals[cost])} %`,
      sums[cost] / totals[cost],
      [placeOf(view, key), coloured(program.sourceText(key).trim(), "python")],
      () => view.choose({ line: key }),
      `${costText(cost, sums[cost])} of ${costText(cost, totals[cost])}`,
    ),
  );
  return part(`what costs most, of ${costText(cost, totals[cost])}`, items);
}

/** @typedef {{size: number, rows: number[], line: string|null}} Held */

/** What is in memory at the peak: arguments together, and the values of each line. @param {View} view */
function large(view) {
  const stage = view.program.stages.findLast((each) => each.peak);
  if (!stage) return null;
  const { bytes, holders } = stage.peak;
  /** @type {Map<string, Held>} */ const found = new Map();
  for (const [row, size] of [...holders].sort((a, b) => b[1] - a[1])) {
    const line = stage.line(row);
    const name = stage.columns.kind[row] === 0 ? (line ?? `row ${row}`) : "arguments";
    const held = found.get(name) ?? { size: 0, rows: [], line };
    held.size += size;
    held.rows.push(row);
    found.set(name, held);
  }
  const most = [...found.values()].sort((a, b) => b.size - a.size).slice(0, FIRST);
  return part(`in memory at the peak, ${bytesText(bytes)} in ${stage.name}`, most.map((held) => heldEntry(view, stage, held, bytes)));
}

/** @param {View} view @param {import("./document.js").Stage} stage @param {Held} held @param {number} bytes */
function heldEntry(view, stage, { size, rows, line }, bytes) {
  const given = stage.columns.kind[rows[0]] !== 0;
  const value = valueText(stage, rows[0]);
  const words = given ? `${rows.length}${stage.peak.holders.length < LISTED ? "" : "+"} argument${rows.length > 1 ? "s" : ""}: ${value}${rows.length > 1 ? ", …" : ""}` : `${rows.length > 1 ? `${rows.length} values` : value}  `;
  const place = line === null ? [] : [placeOf(view, line)];
  const source = line === null ? [] : [make("span", { class: "entry-line" }, coloured(view.program.sourceText(line).trim(), "python"))];
  const all = rows.map((row) => stage.text(row)).join("\n");
  return entry(bytesText(size), size / bytes, [...place, make("span", {}, coloured(words)), ...source], () => view.choose({ stage: stage.index, row: rows[0] }), all);
}

/** The name of an argument, or what makes a value and its type. @param {import("./document.js").Stage} stage @param {number} row */
function valueText(stage, row) {
  const left = stage.word("left", row);
  if (stage.columns.kind[row] !== 0) return stage.word("right", row) || left;
  const type = left.slice(left.indexOf(":") + 1).replace(/\{[\d,]*\}/g, "");
  return clipped(`${stage.word("op", row)} ${type}`, 30);
}

/** "line 12", or "model.py:12" where there are several files. @param {View} view @param {string} key */
function placeOf(view, key) {
  const { files } = view.program;
  const several = files.some((file) => file.path !== files[0].path);
  return make("span", { class: "info-place", text: several ? view.program.place(key) : `line ${key.split(":")[1]}` });
}

/** Lines whose values are worth a look. @param {View} view */
function notable(view) {
  const { program } = view;
  if (!program.watch) return null;
  /** The worst value of each line. @type {{key: string, value: import("./watch.js").Value}[]} */
  const found = [...valuesByLine(program)].flatMap(([key, values]) => {
    const [value] = values.filter(({ notes }) => notes).sort((a, b) => severity(b) - severity(a));
    return value ? [{ key, value }] : [];
  });
  found.sort((a, b) => severity(b.value) - severity(a.value));
  const items = found.slice(0, FIRST).map(({ key, value }) => {
    const words = make("span", { class: severity(value) > 1 ? "bad-words" : "" , text: `${value.back ? "← " : ""}${value.notes}  ` });
    const source = make("span", { class: "entry-line" }, coloured(program.sourceText(key).trim(), "python"));
    return entry("", 0, [placeOf(view, key), words, source], () => view.choose({ line: key }), `${value.op} ${value.type}: ${value.notes}`);
  });
  const measured = counted(program.watch.values.length, "value");
  if (!items.length) return make("section", {}, make("h3", { text: `values of the run, ${measured}` }), make("p", { class: "more", text: "None is NaN, infinite, zero everywhere or beyond float16." }));
  return part(`values worth a look, of ${measured}`, items);
}

/** The lines that lose digits. @param {View} view */
function lossy(view) {
  const { program } = view;
  if (!program.digits) return null;
  const found = [...lossesByLine(program)].filter(([, loss]) => loss.alarm || loss.decisions);
  if (!found.length) return make("section", {}, make("h3", { text: "digits" }), make("p", { class: "more", text: "No line loses digits on these arguments." }));
  const items = found.slice(0, FIRST).map(([key, loss]) => {
    const words = make("span", { class: loss.alarm ? "bad-words" : "", text: `${loss.back ? "← " : ""}${whyText(loss) || lossText(loss)}  ` });
    const source = make("span", { class: "entry-line" }, coloured(program.sourceText(key).trim(), "python"));
    return entry((loss.lost ?? 0).toFixed(1), (loss.lost ?? 0) / (loss.of || 1), [placeOf(view, key), words, source], () => view.choose({ line: key }), lossText(loss));
  });
  return part("lines that lose digits", items);
}

/** NaN and infinities first, then what float16 cannot hold or is zero, then small numbers. @param {import("./watch.js").Value} value */
function severity({ nans, infinite, notes }) {
  return nans || infinite ? 3 : /above|zero/.test(notes) ? 2 : 1;
}

/** How large the stages are. @param {View} view */
function stageSizes(view) {
  const { stages } = view.program;
  if (!stages.length) return null;
  const size = (/** @type {import("./document.js").Stage} */ stage) => stage.totals.equations ?? stage.size;
  const most = Math.max(1, ...stages.map(size));
  const items = stages.map((stage) =>
    entry(short(size(stage)), size(stage) / most, [stage.name], () => view.change({ asked: stage.index }), `${stage.title}: ${counted(size(stage), "row")} that compute`),
  );
  const made = part("size of the stages", items);
  made.classList.add("sizes");
  return made;
}
