/**
 * Rows of a stage that a search found.
 */

/** Rows of a stage that were found, in order. */
export class Hits {
  /** @param {number[]} rows */
  constructor(rows) {
    this.rows = rows;
  }

  get size() {
    return this.rows.length;
  }

  /** @param {number} row */
  has(row) {
    let [first, last] = [0, this.rows.length];
    while (first < last) {
      const middle = (first + last) >> 1;
      if (this.rows[middle] < row) first = middle + 1;
      else last = middle;
    }
    return this.rows[first] === row;
  }

  [Symbol.iterator]() {
    return this.rows[Symbol.iterator]();
  }
}
