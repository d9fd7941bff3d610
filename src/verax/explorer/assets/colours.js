/**
 * Printed lines in colours: programs (jaxpr, StableHLO, HLO) and Python.
 *
 * One pattern a language; a match becomes a span with the name of its group as class.
 */

import { make } from "./elements.js";

const PROGRAM_WORDS = new RegExp(
  [
    String.raw`(?<string>"[^"]*"|'[^']*')`,
    String.raw`(?<type>\b(?:bool|pred|token|bf16|f8\w*|float\d+|u?int\d+|[fiucs]\d+|key<\w+>)\[[^\]]*\](?:\{[\d,]*\})?)`,
    String.raw`(?<tensor>tensor<[^>]*>)`,
    String.raw`(?<value>%[\w.#-]+|@[\w.]+)`,
    String.raw`(?<param>\b[A-Za-z_]\w*(?==))`,
    String.raw`(?<keyword>\b(?:lambda|let|in|return|func|module|ENTRY|ROOT)\b)`,
    String.raw`(?<number>(?<![\w.])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?\b)`,
  ].join("|"),
  "g",
);

const PYTHON_WORDS = new RegExp(
  [
    String.raw`(?<comment>#.*)`,
    String.raw`(?<string>[rbf]*(?:"[^"]*"|'[^']*'))`,
    String.raw`(?<keyword>\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|match|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False)\b)`,
    String.raw`(?<number>(?<![\w.])\d[\d_]*(?:\.\d*)?(?:e[+-]?\d+)?\b)`,
    String.raw`(?<called>\b\w+(?=\())`,
  ].join("|"),
  "g",
);

const LONGEST = 600;

/**
 * Spans for a piece of text.
 * @param {string} text @param {"program"|"python"} language @returns {DocumentFragment}
 */
export function coloured(text, language = "program") {
  const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
  const fragment = document.createDocumentFragment();
  let end = 0;
  for (const match of shown.matchAll(language === "python" ? PYTHON_WORDS : PROGRAM_WORDS)) {
    if (match.index > end) fragment.append(shown.slice(end, match.index));
    const group = Object.entries(match.groups ?? {}).find(([, found]) => found !== undefined);
    fragment.append(group?.[0] === "type" ? typeSpan(match[0]) : make("span", { class: `w-${group?.[0]}`, text: match[0] }));
    end = match.index + match[0].length;
  }
  fragment.append(shown.slice(end));
  return fragment;
}

/** A type: its dtype in one colour, its shape in another. @param {string} text */
function typeSpan(text) {
  const cut = text.indexOf("[");
  const kind = /^(bool|pred|key|token)/.test(text) ? "other" : /^[ius]/.test(text) ? "integer" : "float";
  return make(
    "span",
    { class: "w-type" },
    make("span", { class: `w-${kind}`, text: text.slice(0, cut) }),
    make("span", { class: "w-shape", text: text.slice(cut) }),
  );
}
