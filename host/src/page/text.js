// Makes untrusted text safe to show: no hidden characters, plain links only.

import {element} from "./dom.js";

// Characters that are invisible or change the order of others: controls, direction marks and
// overrides, separators, zero-width fillers, tags. Joiners of emoji and scripts (U+200C, U+200D),
// tab and line feed are allowed.
const hidden = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]",
  "gu");
const most_marks = 1000;

const meanings = {
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x061c: "Arabic letter mark",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "end of direction",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "isolate",
  0x2069: "end of isolate",
};

export function code_name(character) {
  return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

// Splits "a" U+202E "b" into [{text: "a"}, {mark: "U+202E", meaning, count: 1}, {text: "b"}]. Equal
// neighbours share a mark. Beyond `most_marks` such characters become U+FFFD, to limit the number
// of elements.
export function pieces_of(text) {
  const out = [];
  let at = 0;
  let n_marks = 0;
  hidden.lastIndex = 0;  // matchAll() would compile the expression again for each text
  for (let found = hidden.exec(text); found && n_marks < most_marks; found = hidden.exec(text)) {
    if (found.index > at) out.push({text: text.slice(at, found.index)});
    at = found.index + found[0].length;
    const mark = code_name(found[0]);
    const last = out.at(-1);
    if (last && last.mark === mark) {
      last.count += 1;
    } else {
      out.push({mark, meaning: meanings[found[0].codePointAt(0)] ?? "hidden character", count: 1});
      n_marks += 1;
    }
  }
  if (at < text.length) out.push({text: text.slice(at).replace(hidden, n_marks ? "\ufffd" : "")});
  return out;
}

// Text nodes; hidden characters become marks with their names.
export function text_nodes(text) {
  return pieces_of(text).map(
    (one) => one.mark === undefined ? document.createTextNode(one.text) : element("span", {
      class: "mark",
      title: one.meaning,
      dir: "ltr",
      text: one.count > 1 ? `${one.mark}×${one.count}` : one.mark,
    }));
}

// The address of a link if it may be followed, else null: absolute, with http, https or mailto.
export function safe_url(text) {
  if (text.length > 2000) return null;
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch { return null; }
}
