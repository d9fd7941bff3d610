/**
 * The rows of a stage as a tree of clusters: nested programs, scopes, and pieces of long lists.
 *
 * A cluster by scope is a run of consecutive rows, so that folding clusters never makes a
 * cycle, and twelve equal layers are twelve clusters.
 */

import { Stage } from "./document.js";

const LONG = 120;
const FEW_INPUTS = 12;
const SHORTEST_RUN = 3;
const [INPUT, CONSTANT, OUTPUT, HEAD] = [1, 2, 3, 4];

/** Some rows and clusters under one title. */
export class Cluster {
  /** @param {string} id @param {string} title @param {number} row  of the nested program, or -1 */
  constructor(id, title, row = -1) {
    this.id = id;
    this.title = title;
    this.row = row;
    /** @type {Cluster | null} */ this.parent = null;
    /** @type {(number|Cluster)[]} */ this.items = [];
    /** The number of rows in all. */
    this.size = 0;
  }
}

/** The tree, and where each row stands in it. */
export class Clusters {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.next = 0;
    /** @type {(Cluster|null)[]} */ this.home = new Array(stage.size).fill(null);
    /** @type {Map<number, Cluster>} */ this.nested = new Map();
    /** The clusters of many inputs. @type {Cluster[]} */
    this.crowds = [];
    /** @type {Map<number, number[]>} */ const bodies = new Map();
    for (let row = 0; row < stage.size; row++) {
      const outer = this.owner(stage.columns.inside[row]);
      if (stage.columns.kind[row] === HEAD && outer >= 0) continue;
      bodies.set(outer, [...(bodies.get(outer) ?? []), row]);
    }
    this.bodies = bodies;
    this.root = new Cluster("root", stage.name);
    this.fill(this.root, bodies.get(-1) ?? []);
  }

  /**
   * The equation whose body a row is in: heads of nested programs are passed over.
   * @param {number} outer
   */
  owner(outer) {
    const { kind, inside } = this.stage.columns;
    let found = outer;
    while (found >= 0 && kind[found] === HEAD && inside[found] >= 0) found = inside[found];
    return found;
  }

  /** @param {Cluster} cluster @param {number[]} rows */
  fill(cluster, rows) {
    const { kind } = this.stage.columns;
    const inputs = rows.filter((row) => kind[row] === INPUT || kind[row] === CONSTANT);
    const rest = rows.filter((row) => kind[row] !== INPUT && kind[row] !== CONSTANT);
    const items = this.pieces(this.byScope(rest, 0), "rows");
    const crowd = inputs.length > FEW_INPUTS ? [this.made(`${inputs.length} inputs`, inputs)] : [];
    this.crowds.push(...crowd);
    this.adopt(cluster, [...(crowd.length ? crowd : inputs), ...items]);
  }

  /** @param {string} title @param {(number|Cluster)[]} items */
  made(title, items) {
    const cluster = new Cluster(`c${this.next++}`, title);
    cluster.items = items;
    return cluster;
  }

  /** Put items into a cluster; rows with bodies become clusters there. @param {Cluster} cluster @param {(number|Cluster)[]} items */
  adopt(cluster, items) {
    cluster.items = items.map((item) => {
      if (typeof item === "number") {
        const body = this.bodies.get(item);
        this.home[item] = cluster;
        cluster.size++;
        if (!body) return item;
        const nested = new Cluster(`n${item}`, this.titleOf(item), item);
        this.nested.set(item, nested);
        nested.parent = cluster;
        this.home[item] = nested;
        this.fill(nested, body);
        cluster.size += nested.size;
        return nested;
      }
      item.parent = cluster;
      this.adopt(item, item.items);
      cluster.size += item.size;
      return item;
    });
  }

  /** @param {number} row */
  titleOf(row) {
    if (this.stage.columns.kind[row] === HEAD) return this.stage.text(row);
    const name = /\bname=["']?([\w<>.]+)/.exec(this.stage.word("right", row))?.[1];
    const op = this.stage.word("op", row) || this.stage.word("left", row);
    return name ? `${op} ${name}` : op;
  }

  /** The scope of a row, outermost name first: transformation, then functions. @param {number} row */
  names(row) {
    const [path, ...changes] = this.stage.word("scope", row).split(" · ");
    return [changes.join(" · "), ...path.split(/[./]/)];
  }

  /** @param {number[]} rows @param {number} level @returns {(number|Cluster)[]} */
  byScope(rows, level) {
    if (rows.length < SHORTEST_RUN || rows.every((row) => this.names(row).length <= level)) return rows;
    /** @type {{name: string, rows: number[]}[]} */ const runs = [];
    for (const row of rows) {
      const last = runs[runs.length - 1]?.name ?? "";
      // What no transformation made goes on with what stands around it.
      const name = this.names(row)[level] || (level === 0 ? last : "");
      if (runs.length && last === name) runs[runs.length - 1].rows.push(row);
      else runs.push({ name, rows: [row] });
    }
    if (runs.length === 1 || runs.length * 3 > rows.length) return this.byScope(rows, level + 1);
    return runs.flatMap((run) => {
      const inner = this.byScope(run.rows, level + 1);
      if (run.rows.length < SHORTEST_RUN || !run.name) return inner;
      return [this.made(run.name, this.pieces(inner, run.name))];
    });
  }

  /** A long list in pieces of about its square root. @param {(number|Cluster)[]} items @param {string} name @returns {(number|Cluster)[]} */
  pieces(items, name) {
    if (items.length <= LONG) return items;
    const size = Math.ceil(Math.sqrt(items.length));
    /** @type {(number|Cluster)[]} */ const pieces = [];
    for (let i = 0; i < items.length; i += size) {
      const piece = items.slice(i, i + size);
      const [first, last] = [edgeRow(piece[0], 0), edgeRow(piece[piece.length - 1], -1)];
      pieces.push(this.made(`${name} ${first + 1}–${last + 1}`, piece));
    }
    return pieces;
  }

  /** The rows that leave a nested program. @param {number} row */
  outputs(row) {
    return (this.bodies.get(row) ?? []).filter((inner) => this.stage.columns.kind[inner] === OUTPUT);
  }

  /** The rows that enter a nested program. @param {number} row */
  inputs(row) {
    return (this.bodies.get(row) ?? []).filter((inner) => this.stage.columns.kind[inner] === INPUT);
  }

  /** Clusters that are open at the start, outer ones first, as long as few nodes are shown. @param {number} most */
  opened(most) {
    const open = new Set([this.root]);
    let shown = this.root.items.length;
    const next = [this.root];
    for (const cluster of next) {
      for (const item of cluster.items) {
        if (typeof item === "number" || this.crowds.includes(item) || shown + item.items.length > most) continue;
        shown += item.items.length;
        open.add(item);
        next.push(item);
      }
    }
    return open;
  }
}

/** The first or the last row of an item. @param {number|Cluster} item @param {number} at @returns {number} */
function edgeRow(item, at) {
  if (typeof item === "number") return item;
  return item.row >= 0 && at === 0 ? item.row : edgeRow(/** @type {number|Cluster} */ (item.items.at(at)), at);
}
