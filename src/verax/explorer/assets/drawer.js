/**
 * What lies below the panes: the chosen row, costs by line, memory, collectives; one at a time.
 */

import { Collectives } from "./collectives.js";
import { make } from "./elements.js";
import { CostTable } from "./costtable.js";
import { Info } from "./info.js";
import { Memory } from "./memory.js";
import { View } from "./view.js";

export class Drawer {
  /** @param {View} view */
  constructor(view) {
    this.parts = [
      { name: "row", title: "chosen", part: new Info(view) },
      { name: "costs", title: "costs by line", part: new CostTable(view) },
      { name: "memory", title: "memory", part: new Memory(view) },
      ...(view.program.raw.collectives ? [{ name: "collectives", title: "collectives", part: new Collectives(view) }] : []),
    ];
    this.tabs = this.parts.map(({ name, title }, at) =>
      make("button", { class: "tab", role: "tab", id: `drawer-${name}`, text: title, onclick: () => this.show(at) }),
    );
    const list = make("div", { role: "tablist", class: "stages", "aria-label": "details" }, ...this.tabs);
    list.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      this.show((this.at + by + this.tabs.length) % this.tabs.length);
      this.tabs[this.at].focus();
    });
    view.watch((changed) => changed.has("chosen") && this.name(view));
    this.name(view);
    this.legend = make("p", { class: "legend", role: "status", "aria-live": "polite" });
    this.body = make("div", { class: "drawer-body", role: "tabpanel" });
    this.grip = make("div", { class: "separator across", role: "separator", tabindex: 0, "aria-orientation": "horizontal", "aria-label": "height of the details", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 30 });
    this.element = make("section", { class: "drawer", "aria-label": "details" }, this.grip, make("div", { class: "tabs" }, list, this.legend), this.body);
    this.listen();
    this.at = 0;
    this.show(0);
  }

  /** The first tab is a summary while nothing is chosen. @param {View} view */
  name(view) {
    this.tabs[0].textContent = view.chosen === null ? "summary" : "chosen";
  }

  /** @param {number} at */
  show(at) {
    if (!this.parts[at]) return;
    this.at = at;
    for (const [i, tab] of this.tabs.entries()) {
      tab.setAttribute("aria-selected", String(i === at));
      tab.tabIndex = i === at ? 0 : -1;
    }
    this.body.setAttribute("aria-labelledby", this.tabs[at].id);
    this.body.replaceChildren(this.parts[at].part.element);
  }

  listen() {
    const { grip } = this;
    grip.addEventListener("pointerdown", (event) => grip.setPointerCapture(event.pointerId));
    grip.addEventListener("pointermove", (event) => grip.hasPointerCapture(event.pointerId) && this.grow(-event.movementY));
    grip.addEventListener("keydown", (event) => {
      const by = { ArrowUp: 24, ArrowDown: -24 }[event.key];
      if (by) this.grow(by);
    });
  }

  /** @param {number} by */
  grow(by) {
    const height = Math.max(40, Math.min(innerHeight * 0.7, this.element.offsetHeight + by));
    document.documentElement.style.setProperty("--drawer", `${height}px`);
    this.grip.setAttribute("aria-valuenow", String(Math.round((height / innerHeight) * 100)));
  }
}
