// Parses Markdown into blocks. A growing text is parsed again from its last block on, so that each
// piece costs little for any length; blocks are cut at `longest` characters.
//
// Blocks: {t: "p", text}, {t: "h", level, text}, {t: "code", info, text, goes_on}, {t: "hr"},
// {t: "quote", c: [blocks]}, {t: "list", ordered, start, items: [[blocks]]},
// {t: "table", align: ["", "right", "center"], head: [text], rows: [[text]]}. Top-level ones also
// have `begin`, their offset, and `state`, with which parsing continues there.

export const longest = 20000;
const deepest = 6;

// ---- lines -------------------------------------------------------------------------------------

// Returns {text, begin, is_cut}. Lines beyond `longest` are cut; their later parts are plain text.
function lines_of(text, from, first_is_cut) {
  const out = [];
  let is_cut = first_is_cut;
  for (let begin = from; begin < text.length;) {
    const found = text.indexOf("\n", begin);
    const end = found < 0 ? text.length : found;
    if (end - begin > longest) {
      let cut = begin + longest;
      if (/[\udc00-\udfff]/.test(text[cut])) cut -= 1;  // the second half of a character
      out.push({text: text.slice(begin, cut), begin, is_cut, is_open: true});
      begin = cut;
      is_cut = true;
    } else {
      out.push({text: text.slice(begin, end).replace(/\r$/, ""), begin, is_cut});
      begin = end + 1;
      is_cut = false;
    }
  }
  return out;
}

const of_text = (text) => ({text, begin: 0, is_cut: false});
const is_blank = (line) => line.text.trim() === "";
const indent_of = (text) => text.length - text.replace(/^[ \t]+/, "").length;

// ---- beginnings of blocks -----------------------------------------------------------------------

function fence_at(text) {
  const found = /^ {0,3}(`{3,}|~{3,})/.exec(text);
  if (!found) return null;
  const info = text.slice(found[0].length).trim();
  if (found[1][0] === "`" && info.includes("`")) return null;
  return {mark: found[1][0], n: found[1].length, indent: indent_of(text), info: info.slice(0, 100)};
}

function ends_fence(text, fence) {
  const inside = text.trim();
  return indent_of(text) < 4 && inside.length >= fence.n &&
    inside === fence.mark.repeat(inside.length);
}

function heading_at(text) {
  const found = /^ {0,3}(#{1,6})(?:[ \t]|$)/.exec(text);
  if (!found) return null;
  const words = text.slice(found[0].length).trim().split(" ");
  if (words.length > 1 && /^#+$/.test(words.at(-1))) words.pop();
  return {t: "h", level: found[1].length, text: words.join(" ").trim()};
}

function is_rule(text) {
  const inside = text.replace(/[ \t]/g, "");
  return indent_of(text) < 4 && inside.length >= 3 && "-*_".includes(inside[0]) &&
    inside === inside[0].repeat(inside.length);
}

function item_at(text) {
  const found = /^([ \t]{0,40})([-*+]|\d{1,9}[.)])([ \t]{1,4}|$)/.exec(text);
  if (!found || is_rule(text)) return null;
  return {
    indent: found[1].length,
    ordered: found[2].length > 1,
    start: parseInt(found[2], 10),
    mark: found[2].at(-1),
    width: found[0].length,
    text: text.slice(found[0].length),
  };
}

const is_quote = (text) => /^ {0,3}>/.test(text);

function cells_of(text) {
  const out = [""];
  const row = text.trim();
  for (let i = 0; i < row.length; ++i) {
    if (row[i] === "\\" && row[i + 1] === "|")
      out[out.length - 1] += row[++i];
    else if (row[i] === "|")
      out.push("");
    else
      out[out.length - 1] += row[i];
  }
  if (row.startsWith("|")) out.shift();
  if (out.length > 1 && out.at(-1).trim() === "") out.pop();
  return out.slice(0, 64).map((one) => one.trim());
}

function is_table(lines, i) {
  if (i + 1 >= lines.length || !lines[i].text.includes("|")) return false;
  if (!lines[i + 1].text.includes("-")) return false;
  const under = cells_of(lines[i + 1].text);
  return under.every((one) => /^:?-+:?$/.test(one)) &&
    under.length === cells_of(lines[i].text).length;
}

function begins_block(lines, i) {
  const {text} = lines[i];
  return fence_at(text) || heading_at(text) || is_rule(text) || is_quote(text) || item_at(text);
}

// ---- blocks: each function parses from line i on; it returns the block and the next line --------

// `fence`: set if the code began in an earlier piece.
function read_code(lines, i, fence, goes_on) {
  const text = [];
  let n = 0;
  for (; i < lines.length; ++i) {
    const line = lines[i];
    if (!line.is_cut && ends_fence(line.text, fence)) break;
    if (n > longest) {
      const rest = {t: "code", info: fence.info, text: text.join("\n") + "\n", goes_on};
      if (line.is_cut) rest.text = rest.text.slice(0, -1);
      return {block: rest, next: i, state: {fence, is_cut: line.is_cut}};
    }
    const own =
      line.is_cut ? line.text : line.text.slice(Math.min(fence.indent, indent_of(line.text)));
    n += own.length + 1;
    if (line.is_cut && text.length)
      text[text.length - 1] += own;
    else
      text.push(own);
  }
  return {block: {t: "code", info: fence.info, text: text.join("\n"), goes_on}, next: i + 1};
}

function read_quote(lines, i, depth) {
  const inside = [];
  let n = 0;
  for (; i < lines.length && n < longest && !lines[i].is_cut; ++i) {
    const {text} = lines[i];
    if (!is_quote(text) && (is_blank(lines[i]) || begins_block(lines, i))) break;
    inside.push(of_text(text.replace(/^ {0,3}> ?/, "")));
    n += text.length;
  }
  return {block: {t: "quote", c: read_blocks(inside, depth + 1)}, next: i};
}

function read_table(lines, i) {
  const head = cells_of(lines[i].text);
  const align =
    cells_of(lines[i + 1].text)
      .map((one) => one.endsWith(":") ? (one.startsWith(":") ? "center" : "right") : "");
  const rows = [];
  let n = 0;
  for (i += 2; i < lines.length && n < 4 * longest && !lines[i].is_cut; ++i) {
    if (is_blank(lines[i]) || !lines[i].text.includes("|")) break;
    const row = cells_of(lines[i].text).slice(0, head.length);
    while (row.length < head.length) row.push("");
    rows.push(row);
    n += lines[i].text.length;
  }
  return {block: {t: "table", align, head, rows}, next: i};
}

// The text of an item's line; null if the line is outside the list.
function line_of_item(lines, i, first, width) {
  const {text} = lines[i];
  if (is_blank(lines[i])) return "";
  const indent = indent_of(text);
  if (indent >= width) return text.slice(width);
  const item = item_at(text);
  if (item) return indent > first.indent + 1 ? text.slice(indent) : null;
  const is_lazy = !is_blank(lines[i - 1]) && !begins_block(lines, i);
  return is_lazy ? text.slice(indent) : null;
}

function read_list(lines, i, depth) {
  const first = item_at(lines[i].text);
  const items = [];
  let n = 0;
  while (i < lines.length && n < longest && !lines[i].is_cut) {
    const item = item_at(lines[i].text);
    if (!item || item.mark !== first.mark) break;
    const inside = [of_text(item.text)];
    for (++i; i < lines.length && n < longest && !lines[i].is_cut; ++i) {
      const line = line_of_item(lines, i, first, item.width);
      if (line === null) break;
      inside.push(of_text(line));
      n += line.length + 1;
    }
    n += item.text.length + 1;
    items.push(read_blocks(inside, depth + 1));
  }
  return {block: {t: "list", ordered: first.ordered, start: first.start, items}, next: i};
}

function read_paragraph(lines, i) {
  const text = [];
  let n = 0;
  const begin = i;
  for (; i < lines.length && n <= longest; ++i) {
    if (i > begin && (lines[i].is_cut || is_blank(lines[i]) || begins_block(lines, i))) break;
    if (i > begin && is_table(lines, i)) break;
    text.push(lines[i].is_cut ? lines[i].text : lines[i].text.trim());
    n += lines[i].text.length;
    if (lines[i].is_open) {
      ++i;
      break;
    }
  }
  return {block: {t: "p", text: text.join("\n")}, next: i};
}

function read_block(lines, i, depth, state) {
  const line = lines[i];
  if (state?.fence) return read_code(lines, i, state.fence, true);
  if (line.is_cut || depth > deepest) return read_paragraph(lines, i);
  const fence = fence_at(line.text);
  if (fence) return read_code(lines, i + 1, fence, false);
  const heading = heading_at(line.text);
  if (heading) return {block: heading, next: i + 1};
  if (is_rule(line.text)) return {block: {t: "hr"}, next: i + 1};
  if (is_quote(line.text)) return read_quote(lines, i, depth);
  if (item_at(line.text)) return read_list(lines, i, depth);
  if (is_table(lines, i)) return read_table(lines, i);
  return read_paragraph(lines, i);
}

function read_blocks(lines, depth, state) {
  const out = [];
  for (let i = 0; i < lines.length;) {
    if (!state?.fence && !lines[i].is_cut && is_blank(lines[i])) {
      ++i;
      continue;
    }
    const begin = i;
    const read = read_block(lines, i, depth, state);
    const own = state?.fence ? state : {is_cut: lines[begin].is_cut};
    out.push({...read.block, begin: lines[begin].begin, state: own});
    state = read.state;
    i = read.next;
  }
  return out;
}

// Parses `text` from `from` on, where a block with that `state` begins.
export function parse_blocks(text, from = 0, state = undefined) {
  return read_blocks(lines_of(text, from, state?.is_cut ?? false), 0, state);
}
