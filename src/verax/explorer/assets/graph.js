/**
 * The dataflow of a stage as a graph: clusters that fold, zoom, pan, and the same links as
 * in the rows.
 */

import { Cluster, Clusters } from "./clusters.js";
import { Stage } from "./document.js";
import { clipped, counted, draw, make } from "./elements.js";
import { rowHeat } from "./heat.js";
import { isRow, LINKS } from "./links.js";
import { layouts } from "./layout.js";
import { View } from "./view.js";

const SMALL = 150;
const OPEN_AT_START = 80;
const MOST_NODES = 700;
const MOST_EDGES = 12;
const LETTER = 7.3;
const [LEAST_ZOOM, MOST_ZOOM] = [0.05, 3];

/** @typedef {{id: string, row: number, cluster: Cluster|null, title: string, below: string, width: number, height: number, parent: string|null}} GraphNode */

export class Graph {
  /** @param {View} view @param {Stage} stage */
  constructor(view, stage) {
    this.view = view;
    this.stage = stage;
    /** @type {Clusters} */ this.clusters = stage.once("clusters", () => new Clusters(stage));
    /** @type {Set<Cluster>} */ this.open = stage.once("open", () => this.clusters.opened(stage.size <= SMALL ? SMALL * 2 : OPEN_AT_START));
    this.world = draw("g", { class: "world" });
    this.svg = draw("svg", { class: "canvas", role: "group", "aria-label": `dataflow of ${stage.name}`, tabindex: 0 }, arrow(), this.world);
    this.said = make("p", { class: "graph-said", role: "status" });
    const tools = make(
      "div",
      { class: "graph-tools", role: "group", "aria-label": "zoom" },
      tool("+", "zoom in", () => this.zoom(1.25)),
      tool("−", "zoom out", () => this.zoom(0.8)),
      tool("fit", "fit the whole graph", () => this.fit()),
      tool("open all", "unfold all clusters", () => this.openAll(true)),
      tool("fold all", "fold all clusters", () => this.openAll(false)),
    );
    this.element = make("div", { class: "graph" }, tools, this.said);
    this.element.append(this.svg);
    this.place = { x: 0, y: 0, scale: 1 };
    /** @type {Map<string, SVGElement>} */ this.shapes = new Map();
    /** What each shape shows, so that only others are dressed again. @type {Map<string, string>} */
    this.dressed = new Map();
    this.listen();
    this.closed = false;
    /** The number of edges left out. */
    this.hidden = 0;
    this.unwatch = view.watch((changed) => {
      if (changed.has("chosen") && view.reveal) this.revealChosen();
      if (["lit", "hits", "step"].some((name) => changed.has(name))) this.mark();
      if (changed.has("heat")) this.warm();
    });
    void this.layOut(true);
  }

  close() {
    this.closed = true;
    this.unwatch();
    this.element.remove();
  }

  /** Which node stands for a row: the outermost folded cluster around it, or itself. @param {number} row */
  nodeOf(row) {
    let shown = `r${row}`;
    for (let home = this.clusters.home[row]; home; home = home.parent) if (!this.open.has(home)) shown = home.id;
    return shown;
  }

  /** The graph to place: nodes in sight, open clusters, and edges between them. */
  visible() {
    /** @type {GraphNode[]} */ const nodes = [];
    /** @type {{id: string, parent: string|null, cluster: Cluster}[]} */ const groups = [];
    const enter = (/** @type {Cluster} */ cluster, /** @type {string|null} */ parent) => {
      if (cluster.row >= 0 && !this.isHead(cluster.row)) nodes.push(this.rowNode(cluster.row, parent));
      for (const item of cluster.items) {
        if (typeof item === "number") nodes.push(this.rowNode(item, parent));
        else if (!this.open.has(item)) nodes.push(this.clusterNode(item, parent));
        else {
          groups.push({ id: item.id, parent, cluster: item });
          enter(item, item.id);
        }
      }
    };
    enter(this.clusters.root, null);
    return { nodes, groups, edges: this.edges() };
  }

  /** Whether a row only opens a program: it computes nothing. @param {number} row */
  isHead(row) {
    return this.stage.columns.kind[row] === 4;
  }

  /** @returns {[string, string][]} */
  edges() {
    /** @type {Map<string, [string, string]>} */ const found = new Map();
    const join = (/** @type {string} */ from, /** @type {string} */ to) => {
      if (from !== to) found.set(`${from} ${to}`, [from, to]);
    };
    for (let row = 0; row < this.stage.size; row++) {
      if (!this.clusters.home[row]) continue;
      const to = this.nodeOf(row);
      // The inputs of a nested program hang on its equation, which reads the operands.
      const enters = this.stage.columns.kind[row] === 1 && this.stage.columns.inside[row] >= 0;
      for (const read of enters ? [] : this.stage.uses(row)) for (const from of this.sources(read)) join(from, to);
      const nested = this.clusters.nested.get(row);
      if (nested && this.open.has(nested) && !this.isHead(row)) for (const input of this.clusters.inputs(row)) join(to, this.nodeOf(input));
    }
    return this.uncrowded([...found.values()]);
  }

  /**
   * Without the edges of folded clusters that go nearly everywhere: they would hide the rest.
   * @param {[string, string][]} edges @returns {[string, string][]}
   */
  uncrowded(edges) {
    /** @type {Map<string, number>} */ const counts = new Map();
    for (const [from] of edges) counts.set(from, (counts.get(from) ?? 0) + 1);
    const kept = edges.filter(([from]) => from.startsWith("r") || (counts.get(from) ?? 0) <= MOST_EDGES);
    this.hidden = edges.length - kept.length;
    return kept;
  }

  /** The nodes that make the result of a row: the outputs of an open nested program. @param {number} row */
  sources(row) {
    const nested = this.clusters.nested.get(row);
    const outputs = nested && this.open.has(nested) ? this.clusters.outputs(row) : [];
    return (outputs.length ? outputs : [row]).map((each) => this.nodeOf(each));
  }

  /** @param {number} row @param {string|null} parent @returns {GraphNode} */
  rowNode(row, parent) {
    const { stage } = this;
    const [name, ...types] = stage.word("left", row).split(":");
    const op = stage.word("op", row);
    const right = stage.word("right", row);
    const given = stage.columns.kind[row] === 1 && /^\w/.test(right) ? right : "";
    const title = clipped(given || op || (stage.columns.kind[row] === 3 ? "return" : name || right), given ? 32 : 26);
    const below = clipped(types.length ? types.join(":") : op ? "" : right, 30);
    return { id: `r${row}`, row, cluster: null, title, below, parent, ...room(title, below) };
  }

  /** @param {Cluster} cluster @param {string|null} parent @returns {GraphNode} */
  clusterNode(cluster, parent) {
    const title = clipped(`▸ ${cluster.title}`, 30);
    const below = counted(cluster.size, "row");
    return { id: cluster.id, row: cluster.row, cluster, title, below, parent, ...room(title, below) };
  }

  /** Ask for a layout and draw it. @param {boolean} fresh  whether to fit it to the pane */
  async layOut(fresh = false) {
    const graph = this.visible();
    this.said.textContent = `placing ${counted(graph.nodes.length, "node")} …`;
    const bare = {
      nodes: graph.nodes.map(({ id, width, height, parent }) => ({ id, width, height, parent })),
      groups: graph.groups.map(({ id, parent }) => ({ id, parent })),
      edges: graph.edges,
    };
    try {
      const placed = await layouts.of(bare);
      if (this.closed) return;
      this.paint(graph, placed);
      const left = this.hidden ? `, ${this.hidden} of crowded clusters left out` : "";
      this.said.textContent = `${counted(graph.nodes.length, "node")}, ${counted(graph.edges.length, "edge")}${left}`;
      if (fresh) this.start();
      this.revealChosen();
    } catch (error) {
      this.said.textContent = `no layout: ${error}`;
    }
    this.element.dataset.ready = String(graph.nodes.length);
  }

  /** @param {ReturnType<Graph["visible"]>} graph @param {any} placed */
  paint(graph, placed) {
    const highest = placed.nodes.reduce((/** @type {any} */ best, /** @type {any} */ box) => (box.y < best.y ? box : best), { x: 0, y: Infinity });
    this.size = { width: placed.width, height: placed.height, top: highest.x };
    this.shapes.clear();
    this.dressed.clear();
    const boxes = new Map(placed.nodes.map((/** @type {any} */ box) => [box.id, box]));
    const clusters = new Map(graph.groups.map((group) => [group.id, group.cluster]));
    const outer = placed.groups.map((/** @type {any} */ box) => this.groupShape(/** @type {Cluster} */ (clusters.get(box.id)), box));
    const lines = placed.edges.map((/** @type {any} */ edge) => draw("path", { class: "edge", "data-from": edge.from, "data-to": edge.to, d: smooth(edge.points), "marker-end": "url(#arrow)" }));
    const nodes = graph.nodes.map((node) => this.nodeShape(node, boxes.get(node.id)));
    this.world.replaceChildren(...outer, ...lines, ...nodes);
    this.lines = lines;
    this.mark();
    this.warm();
  }

  /** @param {GraphNode} node @param {any} box */
  nodeShape(node, box) {
    const kind = node.cluster ? "folded" : ["equation", "input", "constant", "output", "head"][this.stage.columns.kind[node.row]];
    const [left, top] = [box.x - box.width / 2, box.y - box.height / 2];
    const about = node.cluster ? `cluster ${node.cluster.title}, folded` : this.stage.text(node.row);
    const shape = draw(
      "g",
      { class: `node kind-${kind}`, id: `${this.stage.index}-${node.id}`, role: "button", tabindex: -1, transform: `translate(${left} ${top})` },
      draw("title", { text: about }),
      ...(node.cluster ? [draw("rect", { class: "behind", x: 4, y: 4, width: box.width, height: box.height, rx: 5 })] : []),
      draw("rect", { class: "box", width: box.width, height: box.height, rx: kind === "input" || kind === "output" ? box.height / 2 : 5 }),
      draw("text", { class: "node-title", x: box.width / 2, y: node.below ? 16 : 18, text: node.title }),
      draw("text", { class: "node-type", x: box.width / 2, y: 30, text: node.below }),
      draw("text", { class: "node-sign", x: 9, y: 14, "aria-hidden": "true" }),
    );
    const target = { stage: this.stage.index, row: node.row };
    shape.addEventListener("pointerenter", () => node.row >= 0 && this.view.hover(target));
    shape.addEventListener("pointerleave", () => this.view.hover(null));
    shape.addEventListener("click", () => (node.cluster ? this.toggle(node.cluster) : this.view.choose(target)));
    shape.addEventListener("keydown", (event) => {
      if (/** @type {KeyboardEvent} */ (event).key !== "Enter") return;
      if (node.cluster) this.toggle(node.cluster);
      else this.view.choose(target);
    });
    this.shapes.set(node.id, shape);
    return shape;
  }

  /** @param {Cluster} cluster @param {any} box */
  groupShape(cluster, box) {
    const [left, top] = [box.x - box.width / 2, box.y - box.height / 2];
    const text = clipped(`▾ ${cluster.title}`, Math.max(6, Math.floor(box.width / 7) - 2));
    const title = draw("text", { class: "group-title", x: 8, y: 14, text });
    const shape = draw(
      "g",
      { class: "group", transform: `translate(${left} ${top})`, role: "button", tabindex: -1, "aria-expanded": "true" },
      draw("title", { text: `cluster ${cluster.title}, ${counted(cluster.size, "row")}: click to fold` }),
      draw("rect", { class: "group-box", width: box.width, height: box.height, rx: 8 }),
      title,
    );
    shape.addEventListener("click", () => this.toggle(cluster));
    this.shapes.set(cluster.id, shape);
    return shape;
  }

  /** @param {Cluster} cluster */
  toggle(cluster) {
    if (!this.open.delete(cluster)) this.open.add(cluster);
    if (this.visible().nodes.length > MOST_NODES) {
      this.open.delete(cluster);
      this.said.textContent = `more than ${MOST_NODES} nodes would be unreadable: fold another cluster first`;
      return;
    }
    void this.layOut();
  }

  /** @param {boolean} open */
  openAll(open) {
    this.open.clear();
    for (const cluster of open ? this.clusters.opened(MOST_NODES) : [this.clusters.root]) this.open.add(cluster);
    void this.layOut(true);
  }

  /** Nodes and edges of lit rows get their classes. */
  mark() {
    const lit = this.view.lit.rows[this.stage.index];
    /** @type {Map<string, number>} */ const bits = new Map();
    for (const [row, found] of lit) {
      const node = this.nodeOf(row);
      bits.set(node, (bits.get(node) ?? 0) | found);
    }
    const hits = new Set([...this.view.hits[this.stage.index]].map((row) => this.nodeOf(row)));
    const chosen = this.chosenNode();
    for (const [id, shape] of this.shapes) {
      const state = [bits.get(id) ?? 0, hits.has(id), id === chosen].join();
      if ((this.dressed.get(id) ?? "0,false,false") === state) continue;
      this.dressed.set(id, state);
      const found = LINKS.filter(({ bit }) => (bits.get(id) ?? 0) & bit);
      for (const link of LINKS) shape.classList.toggle(`is-${link.name}`, found.includes(link));
      shape.classList.toggle("hit", hits.has(id));
      shape.classList.toggle("chosen", id === chosen);
      const sign = shape.querySelector(".node-sign");
      if (sign) sign.textContent = found[0]?.sign ?? "";
    }
    for (const line of this.lines ?? []) {
      const { from, to } = line.dataset;
      line.classList.toggle("is-operand", to === chosen);
      line.classList.toggle("is-user", from === chosen);
    }
  }

  /** The heat of each node, as a bar under its title. */
  warm() {
    for (const [id, shape] of this.shapes) {
      if (!id.startsWith("r")) continue;
      const row = Number(id.slice(1));
      const warm = rowHeat(this.view, this.stage, row);
      shape.style.setProperty("--heat", `${warm.share * (warm.tone ? 100 : 60)}%`);
      shape.style.setProperty("--tone", warm.tone ?? "var(--heat-colour)");
      const title = shape.querySelector("title");
      if (title) title.textContent = [this.stage.text(row), warm.title].filter(Boolean).join("\n");
    }
  }

  chosenNode() {
    const { chosen } = this.view;
    const here = isRow(chosen) && chosen.stage === this.stage.index && this.clusters.home[chosen.row];
    return here ? this.nodeOf(chosen.row) : "";
  }

  /** Pan so that the chosen node is seen. */
  revealChosen() {
    const shape = this.shapes.get(this.chosenNode());
    if (!shape) return;
    const found = /translate\(([-\d.]+) ([-\d.]+)\)/.exec(shape.getAttribute("transform") ?? "");
    const { clientWidth, clientHeight } = this.svg;
    if (!found || !clientWidth) return;
    const [x, y] = [Number(found[1]) * this.place.scale + this.place.x, Number(found[2]) * this.place.scale + this.place.y];
    const seen = x > 0 && y > 0 && x < clientWidth - 60 && y < clientHeight - 30;
    if (seen) return;
    this.move({ x: this.place.x + clientWidth / 2 - x, y: this.place.y + clientHeight / 3 - y, scale: this.place.scale });
  }

  /** @param {{x: number, y: number, scale: number}} place */
  move(place) {
    this.place = place;
    this.world.setAttribute("transform", `translate(${place.x} ${place.y}) scale(${place.scale})`);
    this.element.dataset.scale = place.scale.toFixed(3);
  }

  /** The first view: as wide as the pane, but never unreadably small. */
  start() {
    const { clientWidth } = this.svg;
    const { width, top } = this.size ?? { width: 1, top: 0 };
    const scale = Math.max(0.6, Math.min(1, clientWidth / width));
    const fits = width * scale <= clientWidth;
    this.move({ x: clientWidth / 2 - (fits ? width / 2 : top) * scale, y: 34, scale });
  }

  fit() {
    const { clientWidth, clientHeight } = this.svg;
    const { width, height } = this.size ?? { width: 1, height: 1 };
    const scale = Math.max(LEAST_ZOOM, Math.min(1.2, clientWidth / width, clientHeight / height));
    this.move({ x: (clientWidth - width * scale) / 2, y: (clientHeight - height * scale) / 2, scale });
  }

  /** @param {number} by @param {{x: number, y: number}} [at]  what stays in place */
  zoom(by, at = { x: this.svg.clientWidth / 2, y: this.svg.clientHeight / 2 }) {
    const scale = Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, this.place.scale * by));
    const ratio = scale / this.place.scale;
    this.move({ x: at.x - (at.x - this.place.x) * ratio, y: at.y - (at.y - this.place.y) * ratio, scale });
  }

  listen() {
    const { svg } = this;
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const wheel = /** @type {WheelEvent} */ (event);
      const box = svg.getBoundingClientRect();
      if (wheel.shiftKey) this.move({ ...this.place, x: this.place.x - wheel.deltaY - wheel.deltaX });
      else this.zoom(Math.exp(-wheel.deltaY / 500), { x: wheel.clientX - box.left, y: wheel.clientY - box.top });
    }, { passive: false });
    /** @type {PointerEvent | null} */ let held = null;
    svg.addEventListener("pointerdown", (event) => (held = /** @type {PointerEvent} */ (event)));
    svg.addEventListener("pointermove", (event) => {
      const { buttons, movementX, movementY } = /** @type {PointerEvent} */ (event);
      if (held && buttons) this.move({ ...this.place, x: this.place.x + movementX, y: this.place.y + movementY });
    });
    svg.addEventListener("pointerup", () => (held = null));
    svg.addEventListener("keydown", (event) => this.key(/** @type {KeyboardEvent} */ (event)));
  }

  /** Arrows go along the edges from the chosen node, or pan where none is chosen. @param {KeyboardEvent} event */
  key(event) {
    // A node in focus answers Enter itself.
    if (event.key === "Enter" && event.target !== this.svg) return;
    const keys = { Enter: () => this.enter(), "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit() };
    const act = keys[/** @type {keyof typeof keys} */ (event.key)];
    const step = { ArrowUp: [0, 60], ArrowDown: [0, -60], ArrowLeft: [60, 0], ArrowRight: [-60, 0] }[event.key];
    if (act) act();
    else if (step && !this.follow(event.key)) this.move({ ...this.place, x: this.place.x + step[0], y: this.place.y + step[1] });
    else if (!step) return;
    event.preventDefault();
  }

  /** Unfold the cluster of the chosen row, or choose the first row in sight. */
  enter() {
    const { chosen } = this.view;
    const here = isRow(chosen) && chosen.stage === this.stage.index ? chosen.row : -1;
    let folded = null;
    for (let home = this.clusters.home[here] ?? null; home; home = home.parent) if (!this.open.has(home)) folded = home;
    const first = this.stage.size && this.clusters.home.findIndex((home) => home !== null);
    if (folded) this.toggle(folded);
    else if (here < 0) this.view.choose({ stage: this.stage.index, row: first });
  }

  /** Choose a neighbour of the chosen node. @param {string} key @returns {boolean} */
  follow(key) {
    const { chosen } = this.view;
    if (!isRow(chosen) || chosen.stage !== this.stage.index) return false;
    const { row } = chosen;
    const next = { ArrowUp: this.stage.uses(row)[0], ArrowDown: this.stage.users(row)[0], ArrowLeft: this.beside(row, -1), ArrowRight: this.beside(row, 1) }[key];
    if (next === undefined) return false;
    this.view.choose({ stage: this.stage.index, row: next });
    return true;
  }

  /** Another operand of the same user: what stands beside it. @param {number} row @param {number} by */
  beside(row, by) {
    const users = this.stage.users(row);
    const siblings = users.length ? this.stage.uses(users[0]) : [];
    return siblings[siblings.indexOf(row) + by];
  }
}

/** @param {string} text @param {string} title @param {() => void} act */
function tool(text, title, act) {
  return make("button", { class: "quiet", text, title, "aria-label": /\w/.test(text) ? null : title, onclick: act });
}

function arrow() {
  const tip = draw("path", { d: "M0 0L8 4L0 8Z", class: "arrow" });
  const marker = draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, tip);
  return draw("defs", {}, marker);
}

/** @param {string} title @param {string} below */
function room(title, below) {
  const letters = Math.max(title.length + 2, below.length * 0.9, 4);
  return { width: Math.round(letters * LETTER + 24), height: below ? 38 : 28 };
}

/** A smooth line through points. @param {{x: number, y: number}[]} points */
function smooth(points) {
  const [first, ...rest] = points;
  let path = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`;
  for (let i = 0; i < rest.length - 1; i++) {
    const [here, next] = [rest[i], rest[i + 1]];
    path += `Q${here.x.toFixed(1)} ${here.y.toFixed(1)} ${((here.x + next.x) / 2).toFixed(1)} ${((here.y + next.y) / 2).toFixed(1)}`;
  }
  const last = points[points.length - 1];
  return `${path}L${last.x.toFixed(1)} ${last.y.toFixed(1)}`;
}
