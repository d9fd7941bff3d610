/**
 * The document that Python wrote: unpacked, with the inverse of its links.
 *
 * Everything is columnar. A row is a number; what a row is called, reads and comes from is
 * looked up in columns, so that 80,000 rows cost no more than a dozen arrays.
 */

export const KINDS = ["equation", "input", "constant", "output", "head"];
export const CHANGES = ["same", "new", "changed"];
/** Names of the costs, and the totals and columns in which they stand. */
export const COSTS = ["flops", "bytes", "time"];

/**
 * The text of a script element that holds gzipped base64.
 * @param {string} id
 * @returns {Promise<string>}
 */
export async function unpacked(id) {
  const element = document.getElementById(id);
  const binary = atob((element?.textContent ?? "").trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** Lists of numbers for each of `size` keys, in two arrays. */
export class Lists {
  /**
   * @param {number} size
   * @param {Iterable<[number, number]>} pairs  key and value; keys outside are left out
   */
  constructor(size, pairs) {
    const kept = [...pairs].filter(([key]) => key >= 0 && key < size);
    this.starts = new Int32Array(size + 1);
    for (const [key] of kept) this.starts[key + 1]++;
    for (let i = 0; i < size; i++) this.starts[i + 1] += this.starts[i];
    this.values = new Int32Array(kept.length);
    const next = this.starts.slice();
    for (const [key, value] of kept) this.values[next[key]++] = value;
  }

  /** @param {number} key @returns {Int32Array} */
  of(key) {
    return this.values.subarray(this.starts[key], this.starts[key + 1]);
  }
}

/**
 * The pairs (value, row) of a column of lists: what inverts it.
 * @param {number[][]} column
 * @returns {Generator<[number, number]>}
 */
function* inverted(column) {
  for (let row = 0; row < column.length; row++) {
    for (const value of column[row]) yield [value, row];
  }
}

/** One stage of the pipeline: its rows, and the links among them. */
export class Stage {
  /** @param {any} raw @param {number} index */
  constructor(raw, index) {
    this.raw = raw;
    this.index = index;
    /** @type {string} */ this.name = raw.name;
    /** @type {string} */ this.kind = raw.kind;
    /** @type {string} */ this.title = raw.title ?? raw.name;
    /** @type {number|null} */ this.parent = raw.parent ?? null;
    /** @type {number|null} */ this.seconds = raw.seconds ?? null;
    this.columns = raw.rows;
    /** @type {number} */ this.size = raw.rows.op.length;
    /** @type {number[]} */ this.gone = raw.gone ?? [];
    /** @type {any} */ this.peak = raw.peak ?? null;
    /** @type {any} */ this.totals = raw.totals ?? {};
    /** @type {Uint8Array} */ this.foldable = new Uint8Array(this.size);
    for (const outer of raw.rows.inside) if (outer >= 0) this.foldable[outer] = 1;
    /** @type {Map<string, any>} */ this.made = new Map();
  }

  /**
   * What is made once, on first use.
   * @template T
   * @param {string} key @param {() => T} make @returns {T}
   */
  once(key, make) {
    if (!this.made.has(key)) this.made.set(key, make());
    return this.made.get(key);
  }

  /** @param {"op"|"left"|"right"|"scope"} column @param {number} row @returns {string} */
  word(column, row) {
    return this.raw.strings[this.columns[column][row]] ?? "";
  }

  /** A row as one line of text. @param {number} row @param {string[]} strings */
  text(row, strings = this.raw.strings) {
    const { left: lefts, op: ops, right: rights } = this.columns;
    const left = strings[lefts[row]] ?? "";
    const op = strings[ops[row]] ?? "";
    return (left && op ? `${left} = ` : left) + op + spaced(op, strings[rights[row]] ?? "", left);
  }

  /** All rows in lower case, to search in. @returns {string[]} */
  get lowered() {
    return this.once("lowered", () => {
      const strings = this.raw.strings.map((/** @type {string} */ word) => word.toLowerCase());
      return Array.from({ length: this.size }, (_, row) => this.text(row, strings));
    });
  }

  /** The length of the longest row, in letters. */
  get width() {
    return this.once("width", () => {
      let most = 0;
      for (let row = 0; row < this.size; row++) {
        const words = ["left", "op", "right"].map((c) => this.word(/** @type {any} */ (c), row));
        const size = words.reduce((sum, word) => sum + word.length, 4);
        most = Math.max(most, size + 2 * this.columns.depth[row]);
      }
      return most;
    });
  }

  /** @param {number} row @returns {number[]} */
  uses(row) {
    return this.columns.uses[row] ?? [];
  }

  /** @param {number} row @returns {number[]} */
  origins(row) {
    return this.columns.from[row] ?? [];
  }

  /** The rows of this stage that read what `row` makes. @param {number} row */
  users(row) {
    return this.once("users", () => new Lists(this.size, inverted(this.columns.uses))).of(row);
  }

  /**
   * The rows of this stage that were made from a row of its parent.
   * @param {number} row @param {number} size  the number of rows of the parent
   */
  results(row, size) {
    return this.once("results", () => new Lists(size, inverted(this.columns.from))).of(row);
  }

  /** Make what is otherwise made on first use. @param {number} before  the number of rows of the parent */
  prepare(before) {
    if (!this.size) return;
    void this.lowered;
    void this.byLine;
    this.users(0);
    if (before && this.parent !== null) this.results(0, before);
  }

  /** Rows by source line. @returns {Map<string, number[]>} */
  get byLine() {
    return this.once("byLine", () => {
      const found = new Map();
      for (let row = 0; row < this.size; row++) {
        const key = this.line(row);
        if (key === null) continue;
        if (!found.has(key)) found.set(key, []);
        found.get(key).push(row);
      }
      return found;
    });
  }

  /** The user's line as "file:line", or null. @param {number} row */
  line(row) {
    const file = this.columns.file[row];
    return file === undefined || file < 0 ? null : `${file}:${this.columns.line[row]}`;
  }

  /** @param {string} cost @param {number} row @returns {number|null} */
  cost(cost, row) {
    return this.columns[cost]?.[row] ?? null;
  }

  /** Rows whose cost is the sum of what is inside them: 1 in the array. @param {string} cost @returns {Uint8Array} */
  sums(cost) {
    return this.once(`sums ${cost}`, () => {
      const { inside } = this.columns;
      const sums = new Uint8Array(this.size);
      for (let row = 0; row < this.size; row++) {
        if (!this.cost(cost, row)) continue;
        for (let outer = inside[row]; outer >= 0 && !sums[outer]; outer = inside[outer]) sums[outer] = 1;
      }
      return sums;
    });
  }

  /** The largest cost of a row that is no sum of others. @param {string} cost */
  mostCost(cost) {
    return this.once(`most ${cost}`, () => {
      const sums = this.sums(cost);
      let most = 0;
      for (let row = 0; row < this.size; row++) {
        if (!sums[row]) most = Math.max(most, this.cost(cost, row) ?? 0);
      }
      return most;
    });
  }

  /** The bytes of an argument or a constant; 0 where they are not known. @param {number} row @returns {number} */
  sizeOf(row) {
    return this.columns.sizes?.[row] ?? 0;
  }

  /** @param {number} row @returns {string} */
  note(row) {
    return this.columns.notes?.[row] ?? "";
  }
}

/** @param {string} op @param {string} right @param {string} left */
function spaced(op, right, left) {
  if (!right || !(op || left)) return right;
  return /^[[( ]/.test(right) && op ? right : ` ${right}`;
}

/** @typedef {{text: string, rows: [number, number][]}} Step */

/**
 * The steps of a story: rows in a row with one text are one step.
 * @param {any} story @returns {Step[]}
 */
function stepsOf(story) {
  /** @type {Step[]} */ const steps = [];
  for (const [at, row] of (story?.rows ?? []).entries()) {
    const text = story.text[at] ?? "";
    const last = steps[steps.length - 1];
    if (last && last.text === text) last.rows.push(row);
    else steps.push({ text, rows: [row] });
  }
  return steps;
}

/** The whole document. */
export class Program {
  /** @param {any} raw */
  constructor(raw) {
    this.raw = raw;
    /** @type {string} */ this.title = raw.title ?? "program";
    /** @type {{name: string, path: string, first: number, lines: string[]}[]} */
    this.files = raw.files ?? [];
    /** @type {Stage[]} */
    this.stages = (raw.stages ?? []).map((/** @type {any} */ s, /** @type {number} */ i) => new Stage(s, i));
    this.story = raw.story ?? null;
    this.steps = stepsOf(this.story);
    this.profile = raw.profile ?? null;
    this.made = raw.made ?? {};
    /** @type {{stage: number, every: boolean, rows: Record<string, number[]>, values: any[]} | null} */
    this.watch = raw.watch ?? null;
    /** @type {{stage: number, rows: Record<string, number[]>, values: any[], lines: any[]} | null} */
    this.digits = raw.digits ?? null;
    /** The losses of lines, once they are asked for. @type {Map<string, any> | undefined} */ this.lossesByLine = undefined;
    /** Costs by line, once they are summed up. @type {any} */ this.summed = null;
  }

  /** The stages made from a stage. @param {number} index */
  childrenOf(index) {
    return this.stages.filter((stage) => stage.parent === index);
  }

  /** The text of a source line, or "". @param {string} key  "file:line" */
  sourceText(key) {
    const [file, line] = key.split(":").map(Number);
    const piece = this.pieceOf(file, line);
    return piece ? piece.lines[line - piece.first] : "";
  }

  /**
   * The piece of source that holds a line: several pieces may come from one file.
   * @param {number} file @param {number} line
   */
  pieceOf(file, line) {
    const piece = this.files[file];
    const within = piece && line >= piece.first && line < piece.first + piece.lines.length;
    return within ? piece : null;
  }

  /** "model.py:12". @param {string} key */
  place(key) {
    const [file, line] = key.split(":").map(Number);
    return `${this.files[file]?.name ?? "?"}:${line}`;
  }

  /** Whether any stage knows this cost. @param {string} cost */
  knows(cost) {
    return (this.raw.costs?.[cost] ?? 0) > 0 || this.stages.some((stage) => stage.mostCost(cost) > 0);
  }
}
