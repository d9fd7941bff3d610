/**
 * A story: a path of rows with a sentence each, gone through step by step.
 */

import { make } from "./elements.js";
import { View } from "./view.js";

export class Story {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    const { story } = view.program;
    this.steps = story?.rows ?? [];
    this.chips = this.steps.map((/** @type {[number, number]} */ [stage, row], /** @type {number} */ step) =>
      make("button", {
        class: "chip",
        text: String(step + 1),
        title: `${view.program.stages[stage].name}: ${view.program.stages[stage].text(row)}`,
        "aria-label": `step ${step + 1}: ${story.text[step] ?? ""}`,
        onclick: () => this.go(step),
      }),
    );
    this.text = make("p", { class: "story-text", role: "status", "aria-live": "polite" });
    const list = make("ol", { class: "chips" }, ...this.chips.map((/** @type {HTMLElement} */ chip) => make("li", {}, chip)));
    const before = make("button", { class: "quiet", text: "←", "aria-label": "previous step", title: "previous step (p)", onclick: () => this.go(view.step - 1) });
    const after = make("button", { class: "quiet", text: "→", "aria-label": "next step", title: "next step (n)", onclick: () => this.go(view.step + 1) });
    this.element = make(
      "section",
      { class: `story story-${story?.kind ?? "none"}`, "aria-label": "story" },
      make("h2", { class: "story-title", text: story?.title ?? "" }),
      before,
      list,
      after,
      this.text,
    );
    view.watch((changed) => changed.has("step") && this.mark());
  }

  /** @param {number} step */
  go(step) {
    if (step < 0 || step >= this.steps.length) return;
    this.view.change({ step });
    const [stage, row] = this.steps[step];
    this.view.choose({ stage, row });
  }

  mark() {
    const { step, program } = this.view;
    this.text.textContent = program.story?.text[step] ?? "";
    for (const [at, chip] of this.chips.entries()) {
      if (at === step) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    }
    this.chips[step]?.scrollIntoView({ block: "nearest", inline: "center" });
  }
}
