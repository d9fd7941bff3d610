/**
 * A story: a path of rows with a sentence each, gone through step by step.
 */

import { make } from "./elements.js";
import { View } from "./view.js";

export class Story {
  /** @param {View} view @param {import("./workspace.js").Workspace} workspace */
  constructor(view, workspace) {
    this.view = view;
    this.workspace = workspace;
    const { story, steps, stages } = view.program;
    this.chips = steps.map(({ text, rows }, step) =>
      make("button", {
        class: "chip",
        text: String(step + 1),
        title: rows.map(([stage, row]) => `${stages[stage].name}: ${stages[stage].text(row)}`).join("\n"),
        "aria-label": `step ${step + 1}: ${text}`,
        onclick: () => this.go(step),
      }),
    );
    this.text = make("p", { class: "story-text", role: "status", "aria-live": "polite" });
    const list = make("ol", { class: "chips" }, ...this.chips.map((chip) => make("li", {}, chip)));
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
      ...report(story?.text.slice(story.rows.length) ?? []),
    );
    view.watch((changed) => changed.has("step") && this.mark());
  }

  /** @param {number} step */
  go(step) {
    const { steps } = this.view.program;
    if (step < 0 || step >= steps.length) return;
    const { rows } = steps[step];
    this.view.change({ step });
    this.workspace.showStages([...new Set(rows.map(([stage]) => stage))]);
    const [stage, row] = rows[rows.length - 1];
    this.view.choose({ stage, row });
  }

  mark() {
    const { step, program } = this.view;
    const text = program.steps[step]?.text ?? "";
    this.text.textContent = text.split("\n")[0];
    this.text.title = text;
    for (const [at, chip] of this.chips.entries()) {
      if (at === step) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    }
    this.chips[step]?.scrollIntoView({ block: "nearest", inline: "center" });
  }
}

/** What belongs to no row. @param {string[]} texts */
function report(texts) {
  if (!texts.length) return [];
  const paragraphs = texts.map((text) => make("p", { text }));
  return [make("details", { class: "report" }, make("summary", { text: "report" }), make("div", {}, ...paragraphs))];
}
