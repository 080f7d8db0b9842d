// Renders Markdown as elements. A view grows with its text: finished blocks stay, the last one is
// rendered again.

import {copy, element, icon_button} from "./dom.js";
import {parse_blocks} from "./markdown.js";
import {parse_inline} from "./markdown_inline.js";
import {text_nodes} from "./text.js";

// ---- within paragraphs -------------------------------------------------------------------------

function inline_node(one) {
  if (one.t === "br") return [element("br")];
  if (one.t === "code") return [element("code", {dir: "ltr"}, ...text_nodes(one.text))];
  const inside = one.c.flatMap((x) => typeof x === "string" ? text_nodes(x) : inline_node(x));
  if (one.t !== "a") return [element(one.t, {}, ...inside)];
  const fields =
    {href: one.url, title: one.url, rel: "noopener noreferrer nofollow", target: "_blank"};
  return [element("a", fields, element("bdi", {}, ...inside))];
}

export function inline_nodes(text) {
  return parse_inline(text).flatMap((x) => typeof x === "string" ? text_nodes(x) : inline_node(x));
}

// ---- blocks ------------------------------------------------------------------------------------

const auto = {
  dir: "auto"
};

function code_frame(info) {
  const code = element("code", {dir: "ltr"});
  const name = info.split(/\s/, 1)[0].slice(0, 40);
  const head = element("figcaption", {}, element("span", {}, ...text_nodes(name || "text")),
    icon_button("copy", "Copy this code", () => copy(frame.source.join(""))));
  const frame = element("figure", {class: "code"}, head,
    element("pre", {tabindex: "0", role: "region", "aria-label": `Code: ${name || "text"}`}, code));
  frame.source = [];  // raw text of its pieces
  return frame;
}

function table_node(block) {
  const cell = (tag, text, i) => element(tag, {
    ...auto,
    class: block.align[i] || null,
    scope: tag === "th" ? "col" : null,
  },
    ...inline_nodes(text));
  const row = (tag, cells) => element("tr", {}, ...cells.map((text, i) => cell(tag, text, i)));
  return element("div", {class: "table", tabindex: "0", role: "region", "aria-label": "Table"},
    element("table", {}, element("thead", {}, row("th", block.head)),
      element("tbody", {}, ...block.rows.map((cells) => row("td", cells)))));
}

function list_node(block) {
  const items = block.items.map((inside) => element("li", {}, ...block_nodes(inside, {})));
  if (!block.ordered) return element("ul", auto, ...items);
  return element("ol", {...auto, start: block.start === 1 ? null : block.start}, ...items);
}

// Paragraphs in lists and quotes have no `dir`: a browser ignores such children when it determines
// the direction of the whole. chat.css lets each determine its own.
function block_node(block, direction = auto) {
  if (block.t === "p") return element("p", direction, ...inline_nodes(block.text));
  if (block.t === "h")
    return element(`h${Math.min(block.level + 2, 6)}`, direction, ...inline_nodes(block.text));
  if (block.t === "hr") return element("hr");
  if (block.t === "quote") return element("blockquote", auto, ...block_nodes(block.c, {}));
  if (block.t === "list") return list_node(block);
  if (block.t === "table") return table_node(block);
  const frame = code_frame(block.info);
  add_code(frame, block.text);
  return frame;
}

function add_code(frame, text) {
  const piece = element("span", {class: "piece"}, ...text_nodes(text));
  frame.source.push(text);
  frame.querySelector("code").append(piece);
  return piece;
}

function block_nodes(blocks, direction) { return blocks.map((one) => block_node(one, direction)); }

// ---- growing text ------------------------------------------------------------------------------

const part = 20000;  // most characters added per call

export class growing_view {
  // `on_block` is called with the text of each finished block.
  constructor(to, on_block = () => {}) {
    this.to = to;
    this.on_block = on_block;
    this.clear();
  }

  clear() {
    this.to.replaceChildren();
    this.text = "";
    this.has_more = false;
    this.last = null;   // the last block
    this.node = null;   // its element, or the piece of code
    this.frame = null;  // the code that a further piece belongs to
  }

  // Adds the next part of the text; sets `has_more` if further calls will add more.
  set(text) {
    if (text === this.text && this.last) return;
    if (!text.startsWith(this.text)) this.clear();
    let end = this.text.length + part;
    if (/[\udc00-\udfff]/.test(text[end] ?? "")) ++end;  // the second half of a character
    this.has_more = end < text.length;
    this.grow(this.has_more ? text.slice(0, end) : text);
  }

  grow(text) {
    this.text = text;
    const from = this.last?.begin ?? 0;
    const blocks = parse_blocks(text, from, this.last?.state);
    if (!blocks.length) return;
    if (this.last && blocks[0].t === "code" && this.last.t === "code")
      this.grow_code(blocks[0]);
    else {
      this.drop_last();
      this.add(blocks[0]);
    }
    for (const block of blocks.slice(1)) {
      this.on_block(this.node.textContent);
      this.add(block);
    }
  }

  end() {
    if (this.node) this.on_block(this.node.textContent);
  }

  add(block) {
    if (block.t === "code" && block.goes_on && this.frame) {
      this.node = add_code(this.frame, block.text);
    } else {
      const made = block_node(block);
      this.to.append(made);
      this.frame = block.t === "code" ? made : null;
      this.node = this.frame ? made.querySelector(".piece") : made;
    }
    this.last = block;
  }

  drop_last() { (this.frame && !this.last.goes_on ? this.frame : this.node)?.remove(); }

  // Appends new text to the present piece of code.
  grow_code(block) {
    const before = this.last.text;
    if (block.text.startsWith(before) && block.info === this.last.info) {
      this.node.append(...text_nodes(block.text.slice(before.length)));
    } else {
      if (block.info !== this.last.info && !block.goes_on) {
        this.frame.remove();
        this.add(block);
        return;
      }
      this.node.replaceChildren(...text_nodes(block.text));
    }
    this.frame.source[this.frame.source.length - 1] = block.text;
    this.last = block;
  }
}

// Renders a complete text.
export function show_markdown(to, text) {
  const view = new growing_view(to);
  do view.set(text);
  while (view.has_more);
}
