/**
 * Starts the page: unpacks the document, makes the parts, and listens to the keys.
 */

import { Program, unpacked } from "./document.js";
import { Drawer } from "./drawer.js";
import { make } from "./elements.js";
import { Header, legendText } from "./header.js";
import { Search } from "./search.js";
import { Story } from "./story.js";
import { View } from "./view.js";
import { Workspace } from "./workspace.js";

async function start() {
  const program = new Program(JSON.parse(await unpacked("verax-data")));
  const view = new View(program);
  const workspace = new Workspace(view);
  const search = new Search(view);
  const drawer = new Drawer(view);
  const header = new Header(view, search, workspace);
  const story = new Story(view, workspace);
  const parts = [header.element, ...(program.story ? [story.element] : []), workspace.element, drawer.element];
  document.body.replaceChildren(...parts);
  document.title = `${program.title} · verax`;
  for (const pane of workspace.panes) pane.fill();
  const first = workspace.panes[0]?.stage ?? 0;
  view.change({ focus: first });
  view.watch((changed) => {
    if (changed.has("lit")) drawer.legend.replaceChildren(...legendText(view));
  });
  addEventListener("keydown", (event) => pageKey(event, { view, workspace, search, drawer, header, story }));
  if (program.story) story.go(0);
  document.documentElement.dataset.ready = "true";
  performance.mark("verax-ready");
  prepare(program.stages);
}

/** Make ready what searches and links need, while nothing else is to be done. @param {import("./document.js").Stage[]} stages */
function prepare([stage, ...rest], before = stage) {
  if (!stage) return;
  (self.requestIdleCallback ?? setTimeout)(() => {
    stage.prepare(before.size);
    prepare(rest, stage);
  });
}

/** @typedef {{view: View, workspace: Workspace, search: Search, drawer: Drawer, header: Header, story: Story}} Parts */

/** @param {KeyboardEvent} event @param {Parts} parts */
function pageKey(event, parts) {
  const { view, workspace, search, drawer, header, story } = parts;
  const typing = event.target instanceof Element && event.target.matches("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || header.help.open) return;
  const pane = workspace.active;
  /** @type {Record<string, () => void>} */
  const keys = {
    "/": () => search.input.focus(),
    "[": () => pane.show(pane.stage - 1),
    "]": () => pane.show(pane.stage + 1),
    g: () => pane.setForm(pane.form === "graph" ? "rows" : "graph"),
    h: () => header.nextHeat(),
    d: () => header.nextTheme(),
    n: () => story.go(view.step + 1),
    p: () => story.go(view.step - 1),
    1: () => drawer.show(0),
    2: () => drawer.show(1),
    3: () => drawer.show(2),
    4: () => drawer.show(3),
    "?": () => header.help.showModal(),
    Escape: () => (view.query ? search.clear() : view.choose(null)),
  };
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

start().catch((error) => {
  document.body.replaceChildren(make("p", { class: "empty", role: "alert", text: `This page could not be shown: ${error}` }));
  throw error;
});
