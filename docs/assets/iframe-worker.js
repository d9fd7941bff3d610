// The search runs in a worker, which browsers refuse to start for pages that come from
// files. There, a hidden frame does its work: it runs the same script, and passes
// messages as a worker does. Elsewhere this file does nothing.
"use strict";

class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.appendChild(this.frame);
    const inside = this.frame.contentWindow;
    const setup = `
      window.postMessage = (message) =>
        parent.dispatchEvent(new CustomEvent("frame-worker", { detail: message }));
      window.importScripts = (...urls) =>
        urls.reduce((last, url) => last.then(() => new Promise((done) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = done;
          document.body.appendChild(script);
        })), Promise.resolve());`;
    this.ready = new Promise((done) => { this.frame.onload = done; });
    inside.document.open();
    inside.document.write(
      `<html><body><script>${setup}<\/script><script src="${url}"><\/script></body></html>`);
    inside.document.close();
    this.listener = ({ detail }) => {
      const event = new MessageEvent("message", { data: detail });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    };
    window.addEventListener("frame-worker", this.listener);
  }

  postMessage(message) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(
      new MessageEvent("message", { data: structuredClone(message) })));
  }

  terminate() {
    window.removeEventListener("frame-worker", this.listener);
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
