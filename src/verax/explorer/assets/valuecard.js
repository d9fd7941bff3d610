/**
 * A value of a run: its histogram by exponent, its numbers, and its course over a loop.
 */

import { counted, draw, make } from "./elements.js";
import { numberText } from "./watch.js";

/** @typedef {import("./watch.js").Value} Value */

const CARD_WIDTH = 260;
const CARD_HEIGHT = 64;
const FOOT = 14;
const FLOAT_BIAS = 127;
const SPECIAL = 255;
const MOST_CARDS = 8;

/** Cards for values, or nothing. @param {Value[]} values */
export function valueCards(values) {
  if (!values.length) return [];
  const more = values.length > MOST_CARDS ? [make("p", { class: "more", text: `and ${counted(values.length - MOST_CARDS, "value")} more` })] : [];
  return [make("section", { class: "value-cards", tabindex: 0, "aria-label": "values of the run" }, ...values.slice(0, MOST_CARDS).map(card), ...more)];
}

/** @param {Value} value */
function card(value) {
  const title = `${value.back ? "← " : ""}${value.op} ${value.type}`;
  const runs = value.runs === 1 ? "" : ` · ${counted(value.runs, "run")}`;
  return make(
    "article",
    { class: "value-card" },
    make("h3", {}, title, make("span", { class: "more", text: `${value.back ? " cotangent" : ""}${runs}` })),
    histogram(value),
    numbers(value),
    ...value.courses.filter((course) => course.at.length > 1).map((course) => courseFigure(course)),
  );
}

/** @param {Value} value */
function numbers(value) {
  const facts = [
    ["min", numberText(value.least)],
    ["max", numberText(value.greatest)],
    ["mean", numberText(value.mean)],
    ["std", numberText(value.std)],
    ["zeros", `${Number((value.zeros * 100).toPrecision(3))} %`],
    ["NaN", String(value.nans)],
    ...(value.infinite ? [["inf", String(value.infinite)]] : []),
  ];
  const list = make("dl", { class: "value-facts" }, ...facts.map(([name, text]) => make("div", { class: name === "NaN" && value.nans ? "bad" : name === "inf" ? "bad" : "" }, make("dt", { text: name }), make("dd", { text }))));
  return make("div", {}, list, ...(value.notes ? [make("p", { class: value.nans || value.infinite ? "value-notes bad-words" : "value-notes", text: value.notes })] : []));
}

/** Bars for the exponents that occur; zeros and what is not finite stand at the ends. @param {Value} value */
function histogram(value) {
  const { first, bins } = value;
  const said = bins.length ? `elements by exponent, most from ${powerText(first + bins.indexOf(Math.max(...bins)))}` : "no elements";
  const figure = draw("svg", { viewBox: `0 0 ${CARD_WIDTH} ${CARD_HEIGHT + FOOT}`, class: "histogram", role: "img", "aria-label": said });
  const all = bins.map((part, at) => ({ part, at: first + at }));
  const zero = all.find(({ at }) => at === 0)?.part ?? 0;
  const wrong = all.find(({ at }) => at === SPECIAL)?.part ?? 0;
  const rest = all.filter(({ at }) => at > 0 && at < SPECIAL);
  const [low, high] = ends(rest.filter(({ part }) => part).map(({ at }) => at));
  const slots = high - low + 1 + (zero ? 2 : 0) + (wrong ? 2 : 0);
  const step = Math.min(18, CARD_WIDTH / slots);
  const most = Math.max(1, ...bins);
  const start = zero ? 2 * step : 0;
  const bar = (/** @type {number} */ x, /** @type {number} */ part, /** @type {string} */ kind, /** @type {string} */ words) => {
    const height = part ? Math.max(1.5, Math.sqrt(part / most) * CARD_HEIGHT) : 0;
    figure.append(draw("rect", { class: kind, x: x + 0.5, width: Math.max(0.6, step - 1), y: CARD_HEIGHT - height, height }, draw("title", { text: `${words}: ${part / 10} %` })));
  };
  const label = (/** @type {number} */ x, /** @type {string} */ text, anchor = "middle") => figure.append(draw("text", { class: "tick", x, y: CARD_HEIGHT + 11, "text-anchor": anchor, text }));
  if (zero) {
    bar(0, zero, "bar-zero", "zero");
    label(0, "0", "start");
  }
  for (const { part, at } of rest) if (part) bar(start + (at - low) * step, part, "bar", `${powerText(at)} to ${powerText(at + 1)}`);
  if (rest.length) {
    label(start, powerText(low), "start");
    if (high > low + 4) label(start + (high - low + 1) * step, powerText(high + 1), "end");
  }
  if (wrong) {
    bar(start + (high - low + 2) * step, wrong, "bar-wrong", "NaN or infinite");
    label(Math.min(CARD_WIDTH, start + (high - low + 3) * step), "NaN", "end");
  }
  figure.append(draw("line", { class: "axis", x1: 0, x2: CARD_WIDTH, y1: CARD_HEIGHT, y2: CARD_HEIGHT }));
  return figure;
}

/** @param {number[]} some @returns {[number, number]} */
function ends(some) {
  return some.length ? [Math.min(...some), Math.max(...some)] : [0, -1];
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** "2⁻⁵" for an exponent as it is stored. @param {number} stored */
function powerText(stored) {
  if (stored === 0) return "0";
  if (stored === SPECIAL) return "NaN";
  const power = stored - FLOAT_BIAS;
  return `2${power < 0 ? "⁻" : ""}${[...String(Math.abs(power))].map((digit) => RAISED[Number(digit)]).join("")}`;
}

/** Least, mean and greatest over the iterations of a loop. @param {Value["courses"][number]} course */
function courseFigure(course) {
  const { at, least, greatest, mean, nans } = course;
  const known = [...least, ...greatest].filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const x = (/** @type {number} */ i) => (i / Math.max(1, at.length - 1)) * CARD_WIDTH;
  const y = (/** @type {number|null} */ value) => 46 - ((Number(value) - low) / (high - low || 1)) * 42;
  const path = (/** @type {(number|null)[]} */ line) => {
    let pen = "M";
    return line.map((value, i) => {
      if (value === null) {
        pen = "M";
        return "";
      }
      const point = `${pen}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
      return point;
    }).join("");
  };
  const last = at[at.length - 1];
  const words = `over ${course.loop}: from ${numberText(low)} to ${numberText(high)}`;
  const wrong = nans.flatMap((count, i) => (count ? [draw("line", { class: "wrong", x1: x(i), x2: x(i), y1: 0, y2: 50 })] : []));
  return make(
    "figure",
    { class: "course" },
    draw(
      "svg",
      { viewBox: `0 0 ${CARD_WIDTH} 64`, role: "img", "aria-label": words },
      ...wrong,
      draw("path", { class: "course-end", d: known.length ? path(greatest) : "" }),
      draw("path", { class: "course-end", d: known.length ? path(least) : "" }),
      draw("path", { class: "course-mean", d: known.length ? path(mean) : "" }),
      draw("line", { class: "axis", x1: 0, x2: CARD_WIDTH, y1: 50, y2: 50 }),
      draw("text", { class: "tick", x: 0, y: 61, "text-anchor": "start", text: String(at[0]) }),
      draw("text", { class: "tick", x: CARD_WIDTH, y: 61, "text-anchor": "end", text: String(last) }),
    ),
    make("figcaption", { text: words }),
  );
}
