// Parses Markdown within a paragraph into a tree of strings and {t, c, ...}: CommonMark's emphasis,
// code, links and breaks, in linear time and limited depth.

import {safe_url} from "./text.js";

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const deepest = 12;
const longest_address = 2000;
const blank = /\s/;
const ascii_word = /\w/;
const word = /[\p{L}\p{N}_]/u;
const is_blank = (c) => c === undefined || blank.test(c);
const is_word = (c) => c !== undefined && (c < "\x80" ? ascii_word : word).test(c);

// Maps each "[" to the place of its "]".
function brackets_of(text) {
  const out = new Map();
  const open = [];
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === "\\")
      ++i;
    else if (text[i] === "[")
      open.push(i);
    else if (text[i] === "]" && open.length)
      out.set(open.pop(), i);
  }
  return out;
}

// The place of the next run of exactly `n` backticks; -1: none. `missing`: lengths that have no
// further run.
function find_ticks(text, from, n, missing) {
  if (missing.has(n)) return -1;
  for (let i = text.indexOf("`", from); i >= 0; i = text.indexOf("`", i)) {
    let end = i;
    while (text[end] === "`") ++end;
    if (end - i === n) return i;
    i = end;
  }
  missing.add(n);
  return -1;
}

// Parses "(address "title")" at `from`: {address, end}, or null.
function target_at(text, from) {
  if (text[from] !== "(") return null;
  const last = Math.min(text.length, from + longest_address);
  let i = from + 1;
  let depth = 0;
  for (; i < last && !/\s/.test(text[i]); ++i) {
    if (text[i] === "(" && ++depth > deepest) return null;
    if (text[i] === ")" && depth-- === 0) break;
  }
  const address = text.slice(from + 1, i).replace(/^<|>$/g, "");
  if (text[i] === ")") return {address, end: i + 1};
  const title = /\s{1,9}(?:"[^"]{0,500}"|'[^']{0,500}')?\s{0,9}\)/y;
  title.lastIndex = i;
  return title.test(text) ? {address, end: title.lastIndex} : null;
}

class reader {
  constructor(text, in_link) {
    this.text = text;
    this.in_link = in_link;
    this.brackets = in_link ? new Map() : brackets_of(text);
    this.missing = new Set();
    this.frames = [{mark: "", size: 0, c: []}];
    this.at = 0;
  }

  add(one) {
    const to = this.frames.at(-1).c;
    if (typeof one === "string" && typeof to.at(-1) === "string")
      to[to.length - 1] += one;
    else if (one !== "")
      to.push(one);
  }

  // Turns emphasis without an end into text.
  unwrap() {
    const top = this.frames.pop();
    this.add(top.mark.repeat(top.size));
    for (const one of top.c) this.add(one);
  }

  close(mark, left) {
    while (left > 0) {
      let k = this.frames.length - 1;
      while (k > 0 && !(this.frames[k].mark === mark && this.frames[k].size <= left)) --k;
      if (k === 0) break;
      while (this.frames.length - 1 > k) this.unwrap();
      const done = this.frames.pop();
      const t = mark === "~" ? "del" : done.size === 2 ? "strong" : "em";
      this.add({t, c: done.c});
      left -= done.size;
    }
    return left;
  }

  emphasis(mark) {
    const {text, at} = this;
    let end = at;
    while (text[end] === mark) ++end;
    const before = text[at - 1], behind = text[end];
    const in_word = mark === "_";
    let left = end - at;
    this.at = end;
    if (left > 3) return this.add(text.slice(at, end));
    if (!is_blank(before) && !(in_word && is_word(behind))) left = this.close(mark, left);
    const opens = !is_blank(behind) && !(in_word && is_word(before));
    while (left > 0) {
      const size = left >= 2 ? 2 : 1;
      left -= size;
      if (!opens || this.frames.length > deepest || (mark === "~" && size === 1)) {
        this.add(mark.repeat(size));
      } else {
        this.frames.push({mark, size, c: []});
      }
    }
  }

  code() {
    const {text, at} = this;
    let begin = at;
    while (text[begin] === "`") ++begin;
    const n = begin - at;
    const end = find_ticks(text, begin, n, this.missing);
    this.at = end < 0 ? begin : end + n;
    if (end < 0) return this.add("`".repeat(n));
    const inside = text.slice(begin, end).replaceAll("\n", " ");
    const padded = inside.startsWith(" ") && inside.endsWith(" ") && inside.trim() !== "";
    this.add({t: "code", text: padded ? inside.slice(1, -1) : inside});
  }

  // [label](address), and ![label](address), whose picture is not loaded.
  link(is_image) {
    const begin = this.at + (is_image ? 1 : 0);
    const end = this.brackets.get(begin);
    const target = end === undefined ? null : target_at(this.text, end + 1);
    if (!target) {
      this.add(this.text[this.at++]);
      return;
    }
    const label = this.text.slice(begin + 1, end);
    this.at = target.end;
    const url = safe_url(target.address);
    const c = is_image ? [`[image: ${label || "without a text"}]`] : parse_inline(label, true);
    if (url)
      this.add({t: "a", url, c});
    else
      for (const one of [...c, ` (${target.address})`]) this.add(one);
  }

  // <https://a.b> and https://a.b
  address(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return false;
    const in_brackets = found[0].startsWith("<");
    const shown = in_brackets ? found[1] : found[1].replace(/[.,;:!?*_~'")\]]{1,9}$/, "");
    const url = safe_url(shown);
    if (!url) return false;
    this.at += in_brackets ? found[0].length : shown.length;
    this.add({t: "a", url, c: [shown]});
    return true;
  }

  step() {
    const {text, at} = this;
    const c = text[at];
    const next = text[at + 1];
    if (c === "\n" || (c === "\\" && next === "\n")) {
      this.at += c === "\n" ? 1 : 2;
      return this.add({t: "br"});
    }
    if (c === "\\" && next !== undefined && punctuation.includes(next)) {
      this.at += 2;
      return this.add(next);
    }
    if (c === "`") return this.code();
    if (c === "*" || c === "_" || c === "~") return this.emphasis(c);
    if (!this.in_link) {
      if (c === "[") return this.link(false);
      if (c === "!" && next === "[") return this.link(true);
      if (c === "<" && this.address(/<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y)) return;
      if (c === "h" && !is_word(text[at - 1]) && this.address(/(https?:\/\/[^\s<>"`|]{1,2000})/y))
        return;
    }
    this.at += 1;
    this.add(c);
  }

  read() {
    const plain = /[^\\`*_~[!<h\n]+/y;
    while (this.at < this.text.length) {
      plain.lastIndex = this.at;
      const run = plain.exec(this.text);
      if (run) {
        this.at = plain.lastIndex;
        this.add(run[0]);
      } else {
        this.step();
      }
    }
    while (this.frames.length > 1) this.unwrap();
    return this.frames[0].c;
  }
}

// `in_link`: nested links are text.
export function parse_inline(text, in_link = false) { return new reader(text, in_link).read(); }
