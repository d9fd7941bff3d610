/**
 * What devices send each other, line by line, and the memory of each device.
 */

import { coloured } from "./colours.js";
import { bytesText, counted, make } from "./elements.js";
import { View } from "./view.js";

/** @typedef {{file: number, line: number, rows: number[], kind: string, axes: string, devices: number, bytes: number, times: number, known: boolean, sent: number, back: boolean, op: string}} Talk */

const TALK_HEADS = ["line", "collective", "axes", "devices", "bytes", "times", "sent"];
/** @type {Record<string, string>} */
const TALK_TITLES = {
  axes: "the axes of the mesh along which the devices talk",
  devices: "how many talk together",
  bytes: "of the operand on one device, in one run",
  times: "how often it runs; + where that is not known",
  sent: "what each device sends at least, in all runs",
};
/** @type {Record<string, string>} */
const MEMORY_PARTS = { arguments: "arguments", outputs: "outputs", aliased: "of these in the memory of arguments", temporaries: "temporaries", total: "total" };

export class Collectives {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.element = make("div", { class: "collectives", tabindex: 0, role: "region", "aria-label": "what devices send each other" }, this.table(), this.memory());
    view.watch((changed) => changed.has("chosen") && this.mark());
  }

  get content() {
    return this.view.program.raw.collectives;
  }

  table() {
    const { devices, axes, sent, talks } = this.content;
    const sizes = Object.entries(axes).map(([name, size]) => `${name} ${size}`);
    const mesh = counted(devices, "device") + (sizes.length ? ` (${sizes.join(", ")})` : "");
    if (!talks.length) return make("p", { class: "empty", text: `The ${mesh} send each other nothing.` });
    const heads = TALK_HEADS.map((name) => make("th", { scope: "col", title: TALK_TITLES[name], text: name }));
    const caption = make("caption", { text: `${mesh}, each sends ${bytesText(sent)}` });
    const rows = talks.map((/** @type {Talk} */ talk) => this.row(talk));
    return make("table", {}, caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
  }

  /** @param {Talk} talk */
  row(talk) {
    const { program } = this.view;
    const key = talk.file < 0 ? null : `${talk.file}:${talk.line}`;
    const words = key === null ? ["(of no line)"] : [make("span", { class: "info-place", text: program.place(key) }), coloured(program.sourceText(key).trim(), "python")];
    const title = `${talk.op}: choose the row that does it`;
    const jump = make("button", { class: "jump", title, onclick: () => this.choose(talk) }, ...(talk.back ? ["← "] : []), ...words);
    const share = (100 * talk.sent) / (this.content.talks[0].sent || 1);
    const row = make(
      "tr",
      { "data-rows": talk.rows.join(" ") },
      make("th", { scope: "row" }, jump),
      ...[talk.kind, talk.axes].map((text) => make("td", { text })),
      ...[String(talk.devices), bytesText(talk.bytes), `${talk.times.toLocaleString("en")}${talk.known ? "" : "+"}`].map((text) => make("td", { class: "amount", text })),
      make("td", { class: "amount", style: `--heat:${share}%`, text: bytesText(talk.sent) }),
    );
    row.addEventListener("pointerenter", () => this.hover(talk, key));
    row.addEventListener("pointerleave", () => this.view.hover(null));
    return row;
  }

  /** @param {Talk} talk @param {string | null} key */
  hover(talk, key) {
    if (talk.rows.length) this.view.hover({ stage: this.content.stage, row: talk.rows[0] });
    else if (key !== null) this.view.hover({ line: key });
  }

  /** The row, and with it the line; the next one of the entry if it is chosen already. @param {Talk} talk */
  choose(talk) {
    const { chosen } = this.view;
    const { stage } = this.content;
    const at = chosen !== null && "row" in chosen && chosen.stage === stage ? talk.rows.indexOf(chosen.row) : -1;
    const row = talk.rows[(at + 1) % talk.rows.length];
    if (row !== undefined) this.view.choose({ stage, row });
    else if (talk.file >= 0) this.view.choose({ line: `${talk.file}:${talk.line}` });
  }

  memory() {
    const { memory } = this.content;
    const items = Object.entries(MEMORY_PARTS)
      .filter(([name]) => memory[name] || name !== "aliased")
      .flatMap(([name, words]) => [make("dt", { text: words }), make("dd", { text: bytesText(memory[name]) })]);
    return make("section", { class: "device-memory" }, make("h3", { text: "memory of each device" }), make("dl", {}, ...items));
  }

  mark() {
    const { chosen } = this.view;
    const here = chosen !== null && "row" in chosen && chosen.stage === this.content.stage ? String(chosen.row) : null;
    for (const row of this.element.querySelectorAll("tr[data-rows]")) {
      row.classList.toggle("chosen", here !== null && (row.getAttribute("data-rows") ?? "").split(" ").includes(here));
    }
  }
}
