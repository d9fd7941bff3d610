/**
 * A list of which only the rows in sight are elements.
 *
 * All rows have one height, so the place of a row is a product; elements are reused while
 * scrolling. Printing shows all rows, up to a limit.
 */

import { make } from "./elements.js";

const SPARE = 10;
const PRINTED = 3000;

export class VirtualList {
  /**
   * @param {{
   *   role: string, label: string, rowHeight: number,
   *   build: (item: number, element: HTMLElement, index: number) => void,
   *   decorate: (item: number, element: HTMLElement) => void,
   * }} options
   */
  constructor(options) {
    this.options = options;
    this.body = make("div", { class: "list-body", role: "presentation" });
    this.element = make(
      "div",
      { class: "list", role: options.role, "aria-label": options.label, tabindex: 0 },
      this.body,
    );
    /** @type {ArrayLike<number>} */ this.items = [];
    /** @type {Map<number, HTMLElement>} */ this.shown = new Map();
    /** @type {HTMLElement[]} */ this.spare = [];
    this.printing = false;
    let due = 0;
    this.element.addEventListener("scroll", () => {
      this.element.classList.toggle("sideways", this.element.scrollLeft > 0);
      if (!due) due = requestAnimationFrame(() => ((due = 0), this.fill()));
    });
    this.observer = new ResizeObserver(() => this.fill());
    this.observer.observe(this.element);
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  /** @param {boolean} printing */
  print(printing) {
    this.printing = printing;
    this.rebuild();
  }

  /** @param {ArrayLike<number>} items @param {number} letters  the longest row */
  setItems(items, letters) {
    this.items = items;
    this.body.style.height = `${items.length * this.options.rowHeight}px`;
    this.body.style.minWidth = `calc(${Math.min(letters, 640)}ch + var(--gutter))`;
    this.rebuild();
  }

  /** Make all rows in sight again. */
  rebuild() {
    for (const element of this.shown.values()) element.remove();
    this.shown.clear();
    this.spare = [];
    this.fill();
  }

  /** Rows in sight get elements; others give theirs back. */
  fill() {
    const { rowHeight, build, decorate } = this.options;
    const { scrollTop, clientHeight } = this.element;
    let first = Math.max(0, Math.floor(scrollTop / rowHeight) - SPARE);
    let last = Math.min(this.items.length, Math.ceil((scrollTop + clientHeight) / rowHeight) + SPARE);
    if (this.printing) [first, last] = [0, Math.min(this.items.length, PRINTED)];
    for (const [index, element] of this.shown) {
      if (index >= first && index < last) continue;
      this.shown.delete(index);
      this.spare.push(element);
    }
    const before = this.shown.size === 0 ? null : undefined;
    const fragment = document.createDocumentFragment();
    for (let index = first; index < last; index++) {
      if (this.shown.has(index)) continue;
      const element = this.spare.pop() ?? make("div");
      element.className = "row";
      element.style.top = `${index * rowHeight}px`;
      build(this.items[index], element, index);
      decorate(this.items[index], element);
      this.shown.set(index, element);
      if (!element.isConnected || before === null) fragment.append(element);
    }
    this.body.append(fragment);
    for (const element of this.spare) element.remove();
  }

  /** Lit rows and hits: elements in sight get their classes again. */
  decorate() {
    for (const [index, element] of this.shown) this.options.decorate(this.items[index], element);
  }

  /** The element of an item, if it is in sight. @param {number} index */
  elementAt(index) {
    return this.shown.get(index) ?? null;
  }

  /** @param {number} index @param {boolean} always  scroll even if it is in sight */
  reveal(index, always = false) {
    const { rowHeight } = this.options;
    const { scrollTop, clientHeight } = this.element;
    const top = index * rowHeight;
    const inSight = top >= scrollTop && top + rowHeight <= scrollTop + clientHeight;
    if (!inSight || always) this.element.scrollTop = top - clientHeight / 2 + rowHeight / 2;
    this.fill();
  }

  /** Scroll just as far as keys need. @param {number} index */
  nudge(index) {
    const { rowHeight } = this.options;
    const { scrollTop, clientHeight } = this.element;
    const top = index * rowHeight;
    if (top < scrollTop) this.element.scrollTop = top;
    if (top + rowHeight > scrollTop + clientHeight) this.element.scrollTop = top + rowHeight - clientHeight;
    this.fill();
  }

  /** The item under the pointer. @param {Event} event @returns {number | null} */
  indexOf(event) {
    const row = event.target instanceof Element ? event.target.closest(".row") : null;
    if (!row) return null;
    for (const [index, element] of this.shown) if (element === row) return index;
    return null;
  }

  /** The number of rows that fit. */
  get page() {
    return Math.max(1, Math.floor(this.element.clientHeight / this.options.rowHeight) - 1);
  }
}
