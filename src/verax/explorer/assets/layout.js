/**
 * Layouts asked of the worker, or of the page itself where workers are forbidden.
 */

import { unpacked } from "./document.js";

/** @typedef {(placed: any) => void} Settle */

class Layouts {
  constructor() {
    /** @type {Map<number, [Settle, (error: Error) => void]>} */ this.waiting = new Map();
    this.next = 0;
    /** @type {Promise<(graph: any) => Promise<any>> | null} */ this.started = null;
  }

  /** The placed graph. @param {any} graph @returns {Promise<any>} */
  async of(graph) {
    this.started ??= this.start();
    return (await this.started)(graph);
  }

  async start() {
    const text = await unpacked("verax-layout");
    try {
      const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
      worker.onmessage = ({ data }) => this.settle(data);
      return (/** @type {any} */ graph) => this.ask(worker, graph);
    } catch {
      const script = document.createElement("script");
      script.textContent = text;
      document.head.append(script);
      return async (/** @type {any} */ graph) => /** @type {any} */ (globalThis).veraxLayOut(graph);
    }
  }

  /** @param {Worker} worker @param {any} graph */
  ask(worker, graph) {
    const number = this.next++;
    return new Promise((settle, fail) => {
      this.waiting.set(number, [settle, fail]);
      worker.postMessage({ number, graph });
    });
  }

  /** @param {{number: number, placed?: any, error?: string}} answer */
  settle({ number, placed, error }) {
    const [settle, fail] = this.waiting.get(number) ?? [];
    this.waiting.delete(number);
    if (error) fail?.(new Error(error));
    else settle?.(placed);
  }
}

export const layouts = new Layouts();
