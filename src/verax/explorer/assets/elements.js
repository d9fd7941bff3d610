/**
 * Elements by one function, and numbers as people read them.
 *
 * Text always goes through `textContent`: no name of a user can become markup.
 */

/**
 * An element with attributes and children; `class`, `text` and `on...` are understood.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node|string)} children
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  dress(element, attributes);
  element.append(...children);
  return element;
}

/**
 * The same for SVG.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node|string)} children
 * @returns {SVGElement}
 */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(element, attributes);
  element.append(...children);
  return element;
}

/** @param {Element} element @param {Record<string, any>} attributes */
function dress(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

const STEPS = ["", "k", "M", "G", "T", "P"];

/** A number in at most four letters: 950, 1.2k, 34M. @param {number} value */
export function short(value) {
  let step = 0;
  let size = Math.abs(value);
  while (size >= 999.5 && step < STEPS.length - 1) {
    size /= 1000;
    step++;
  }
  const digits = size >= 9.95 || step === 0 ? Math.round(size) : size.toFixed(1);
  return `${value < 0 ? "−" : ""}${digits}${STEPS[step]}`;
}

/** @param {number} value */
export function bytesText(value) {
  const text = short(value);
  return /\d$/.test(text) ? `${text} B` : `${text.slice(0, -1)} ${text.slice(-1)}B`;
}

/** @param {number} value seconds */
export function secondsText(value) {
  if (value === 0) return "0 s";
  if (value < 1e-3) return `${(value * 1e6).toPrecision(3)} µs`;
  return value < 1 ? `${(value * 1e3).toPrecision(3)} ms` : `${value.toPrecision(3)} s`;
}

/** A cost with its unit. @param {string} cost @param {number|null} value */
export function costText(cost, value) {
  if (value === null || value === undefined) return "";
  if (cost === "time") return secondsText(value);
  return cost === "bytes" ? bytesText(value) : `${short(value)} flop`;
}

/** "1,234 rows". @param {number} number @param {string} noun */
export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Text cut to a number of letters. @param {string} text @param {number} letters */
export function clipped(text, letters) {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}
