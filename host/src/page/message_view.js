// One message as elements: thinking, text, tool calls, notes, and buttons for actions.

import {announce, copy, element, icon, icon_button} from "./dom.js";
import {growing_view} from "./render.js";
import {text_nodes} from "./text.js";

const names = {
  user: "You",
  assistant: "Answer",
  tool: "Tool result"
};
const notes = {
  stopped: "Stopped.",
  length: "The answer reached the number of tokens that it may have.",
};

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;  // incomplete, or not JSON
  }
}

export function figures_text(figures) {
  if (!figures) return "";
  const out = [];
  if (figures.predicted_n !== undefined) out.push(`${figures.predicted_n} tokens`);
  if (figures.predicted_per_second > 0)
    out.push(`${figures.predicted_per_second.toFixed(1)} tokens/s`);
  const known = figures.cache_n ?? 0;
  if (figures.prompt_n !== undefined)
    out.push(`prompt ${figures.prompt_n + known}, ${known} known`);
  return out.join(" · ");
}

export class message_view {
  // actions: again(node), edit(node, text), version(node, index), results(node, texts).
  constructor(node, actions) {
    this.actions = actions;
    this.node = node;
    this.text = element("div", {class: "text"});
    this.thinking_text = element("div", {class: "thinking-text"});
    this.summary = element("summary", {});
    this.thinking =
      element("details", {class: "thinking", hidden: true}, this.summary, this.thinking_text);
    this.calls = element("div", {class: "calls"});
    this.note = element("p", {class: "note", hidden: true});
    this.foot = element("div", {class: "foot"});
    this.item = element("li", {class: `message ${node.role}`, "data-id": node.id},
      element("h2", {class: node.role === "tool" ? "label" : "unseen", text: names[node.role]}),
      this.thinking, this.text, this.calls, this.note, this.foot);
    this.shown = {};  // the state that the elements show
    if (node.role === "assistant") {
      const on_block = (text) => {
        if (this.node.state === "running") announce(text);
      };
      this.answer = new growing_view(this.text, on_block);
      this.thought = new growing_view(this.thinking_text);
    }
  }

  // True if only a part of the text is drawn; update() draws more.
  get has_more() { return Boolean(this.answer?.has_more || this.thought?.has_more); }

  // `is_last`: no message follows, so the user can give results of tools.
  update(node, version, is_last) {
    this.node = node;
    this.item.classList.toggle("running", node.state === "running");
    if (node.role === "assistant") {
      this.show_thinking();
      this.answer.set(node.text);
      if (node.state !== "running" && this.shown.state === "running") this.answer.end();
      this.show_calls(is_last);
    } else if (this.shown.text !== node.text) {
      this.text.replaceChildren(
        element("div", {class: "plain", dir: "auto"}, ...text_nodes(node.text)));
    }
    this.item.setAttribute("aria-busy", String(node.state === "running" || this.has_more));
    this.show_note();
    this.show_foot(version);
    this.shown.text = node.text;
    this.shown.state = node.state;
  }

  show_thinking() {
    const {thinking, text, state} = this.node;
    this.thinking.hidden = thinking === "";
    if (thinking === "") return;
    const goes_on = state === "running" && text === "";
    this.summary.textContent = goes_on ? "Thinking…" : "Thoughts";
    this.thought.set(thinking);
  }

  show_calls(is_last) {
    const {calls, state} = this.node;
    const wants_results = calls.length > 0 && is_last && state === "whole";
    const key = JSON.stringify([calls, wants_results]);
    if (key === this.shown.calls) return;
    this.shown.calls = key;
    this.calls.replaceChildren(...calls.map(
      (call) => element("div", {class: "call"},
        element("p", {class: "label"}, icon("gear"),
          "Tool call: ", element("bdi", {}, element("code", {}, ...text_nodes(call.name || "…")))),
        element("pre", {dir: "ltr", tabindex: "0", role: "region", "aria-label": "Arguments"},
          ...text_nodes(pretty(call.arguments))))));
    if (wants_results) this.calls.append(this.results_form());
  }

  results_form() {
    const fields = this.node.calls.map((call) => element("textarea", {
      rows: 2,
      dir: "auto",
      "aria-label": `Result of ${call.name}`,
      placeholder: `Result of ${call.name}`,
    }));
    const give = (event) => {
      event.preventDefault();
      this.actions.results(this.node, fields.map((one) => one.value));
    };
    return element("form", {class: "results", on: {submit: give}}, ...fields,
      element("button", {type: "submit", class: "main-button", text: "Send results"}));
  }

  show_note() {
    const {state, note} = this.node;
    const text = note || notes[state] || "";
    this.note.hidden = text === "";
    this.note.classList.toggle("trouble", state === "failed" || state === "broken");
    if (text === this.shown.note) return;
    this.shown.note = text;
    this.note.replaceChildren(...text_nodes(text));
    if (state === "failed" || state === "broken") {
      const call = () => this.actions.again(this.node);
      this.note.append(" ",
        element(
          "button", {type: "button", class: "text-button", text: "Try again", on: {click: call}}));
      announce(text);
    }
  }

  show_foot(version) {
    const {node} = this;
    const key = JSON.stringify([node.state, version.index, version.count, node.figures]);
    if (key === this.shown.foot) return;
    this.shown.foot = key;
    this.foot.replaceChildren();
    if (node.state === "running") {
      this.foot.append(element(
        "span", {class: "busy", "aria-hidden": "true"}, element("i"), element("i"), element("i")));
      return;
    }
    if (version.count > 1) this.foot.append(this.arrows(version));
    if (!node.text && !node.calls.length) return;
    this.foot.append(icon_button("copy", "Copy the text", () => copy(this.node.text)));
    if (node.role !== "tool") this.foot.append(icon_button("edit", "Edit", () => this.edit()));
    if (node.role === "assistant")
      this.foot.append(icon_button("again", "Generate again", () => this.actions.again(this.node)));
    const figures = figures_text(node.figures);
    if (figures) this.foot.append(element("span", {class: "figures", text: figures}));
  }

  arrows({index, count}) {
    const go = (to) => () => this.actions.version(this.node, to);
    return element("span", {class: "versions", role: "group", "aria-label": "Versions"},
      icon_button("left", "Earlier version", go(index - 1),
        {disabled: index === 0, "data-action": "earlier"}),
      element("span", {text: `${index + 1}/${count}`}),
      icon_button("right", "Later version", go(index + 1),
        {disabled: index + 1 === count, "data-action": "later"}));
  }

  edit() {
    const field = element("textarea", {
      rows: Math.min(12, this.node.text.split("\n").length + 1),
      dir: "auto",
      "aria-label": "New text"
    });
    field.value = this.node.text;
    const end = () => {
      form.remove();
      this.item.classList.remove("editing");
      this.foot.querySelector("button[aria-label=Edit]")?.focus();
    };
    const save = (event) => {
      event.preventDefault();
      const text = field.value;
      end();
      if (text.trim() && text !== this.node.text) this.actions.edit(this.node, text);
    };
    const keys = (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        end();
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        save(event);
      }
    };
    const verb = this.node.role === "user" ? "Send" : "Save";
    const form = element("form", {class: "edit", on: {submit: save, keydown: keys}}, field,
      element("div", {class: "row"},
        element("button", {type: "button", class: "text-button", text: "Cancel", on: {click: end}}),
        element("button", {type: "submit", class: "main-button", text: verb})));
    this.item.classList.add("editing");
    this.text.after(form);
    field.focus();
  }
}
