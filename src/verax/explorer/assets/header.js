/**
 * The bar on top: title, search, heat, panes, theme and help; and the keys of the page.
 */

import { make } from "./elements.js";
import { heatsOf } from "./heat.js";
import { isRow, LINKS } from "./links.js";
import { View } from "./view.js";

const THEMES = ["auto", "light", "dark"];
const KEYS = [
  ["/", "search the source and all stages; Enter and Shift+Enter step through hits"],
  ["↑ ↓ Home End", "choose rows (or source lines) in a pane"],
  ["→ ← Enter", "unfold, fold, toggle a nested program"],
  ["[  ]", "the stage before, the stage after, in the pane used last"],
  ["g", "rows or graph"],
  ["+ − 0", "zoom in, out, fit, in a graph; arrows follow its edges, Enter unfolds"],
  ["h", "heat: flops, bytes, time; of a watched run range, zeros, NaN; off"],
  ["1 2 3 4", "details: chosen row or summary, costs by line, memory; collectives, if there are several devices"],
  ["n  p", "the next and the previous step of a story"],
  ["d", "light, dark, or as the system says"],
  ["Escape", "close, clear the search, choose nothing"],
];

export class Header {
  /** @param {View} view @param {import("./search.js").Search} search @param {import("./workspace.js").Workspace} workspace */
  constructor(view, search, workspace) {
    this.view = view;
    const { program } = view;
    const made = [program.made.device, program.made.verax && `verax ${program.made.verax}`, program.made.jaxlib && `jaxlib ${program.made.jaxlib}`];
    this.heat = /** @type {HTMLSelectElement} */ (
      make("select", { class: "heat-choice", "aria-label": "heat in the gutter", title: "heat in the gutter (h)" }, ...this.heats().map((name) => make("option", { value: name, text: name === "off" ? "no heat" : `heat: ${name}` })))
    );
    this.heat.value = view.heat;
    this.heat.addEventListener("change", () => view.change({ heat: this.heat.value }));
    this.theme = make("button", { class: "quiet theme", onclick: () => this.nextTheme() });
    const pane = make("button", { class: "quiet", text: "+ pane", title: "one more pane", onclick: () => workspace.openNext() });
    const help = make("button", { class: "quiet", text: "?", title: "keys (?)", "aria-label": "keys", onclick: () => this.help.showModal() });
    this.help = /** @type {HTMLDialogElement} */ (helpDialog());
    this.element = make(
      "header",
      { class: "top" },
      make("h1", {}, make("span", { class: "brand", text: "verax" }), make("span", { class: "title", text: program.title })),
      make("span", { class: "made", text: [...made.filter(Boolean), program.profile && `profiled over ${program.profile.runs} runs`].filter(Boolean).join(" · "), title: program.profile?.note }),
      search.element,
      this.heat,
      pane,
      this.theme,
      help,
      this.help,
    );
    this.setTheme(remembered());
    document.documentElement.dataset.heat = view.heat;
    view.watch((changed) => {
      if (!changed.has("heat")) return;
      this.heat.value = view.heat;
      document.documentElement.dataset.heat = view.heat;
    });
  }

  /** What heat can show: the costs that some stage knows, and the values of a run. */
  heats() {
    return heatsOf(this.view);
  }

  nextHeat() {
    const heats = this.heats();
    this.view.change({ heat: heats[(heats.indexOf(this.view.heat) + 1) % heats.length] });
  }

  nextTheme() {
    this.setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % THEMES.length]);
    this.view.change({ lit: this.view.lit });
  }

  /** @param {string} theme */
  setTheme(theme) {
    const root = document.documentElement;
    root.dataset.theme = theme;
    root.style.colorScheme = theme === "auto" ? "light dark" : theme;
    this.theme.textContent = { auto: "◐ auto", light: "○ light", dark: "● dark" }[theme] ?? theme;
    this.theme.setAttribute("aria-label", `theme: ${theme}`);
    this.theme.title = "theme (d)";
    try {
      localStorage.setItem("verax-theme", theme);
    } catch {
      // A frame may forbid storage: then the choice lasts as long as the page.
    }
  }
}

function remembered() {
  try {
    const theme = localStorage.getItem("verax-theme") ?? "auto";
    return THEMES.includes(theme) ? theme : "auto";
  } catch {
    return "auto";
  }
}

function helpDialog() {
  const keys = KEYS.flatMap(([key, words]) => [make("dt", {}, make("kbd", { text: key })), make("dd", { text: words })]);
  const signs = LINKS.flatMap(({ name, sign, words }) => [make("dt", { class: `is-${name}` }, make("span", { class: "link", text: sign })), make("dd", { text: words })]);
  const changes = [["+", "new", "new in this stage"], ["~", "changed", "changed by this stage"], ["−", "gone", "removed by this stage"]].flatMap(([sign, name, words]) => [
    make("dt", { class: `change-${name}` }, make("span", { class: "change", text: sign })),
    make("dd", { text: words }),
  ]);
  return make(
    "dialog",
    { class: "help", "aria-label": "keys and signs" },
    make("h2", { text: "Keys" }),
    make("dl", {}, ...keys),
    make("h2", { text: "Signs in the gutter" }),
    make("dl", {}, ...signs, ...changes),
    make("form", { method: "dialog" }, make("button", { text: "close" })),
  );
}

/** The links of what is lit, in words. @param {View} view */
export function legendText(view) {
  const target = view.hovered ?? view.chosen;
  if (target === null) return [];
  return LINKS.flatMap(({ bit, name, sign, words }) => {
    const count = view.lit.count(bit);
    if (!count) return [];
    const noun = bit === 1 ? words : bit === 16 ? (isRow(target) ? words : "from this line") : `${words}${count === 1 ? "" : "s"}`;
    return [make("span", { class: `legend-item is-${name}` }, make("span", { class: "link", text: sign }), bit === 1 ? noun : ` ${count} ${noun}`)];
  });
}
