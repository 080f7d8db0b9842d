// The open conversation: sends messages, receives answers, makes versions.

import {api_error, chat as stream} from "./api.js";
import * as tree from "./conversation.js";
import {toast} from "./dom.js";

const most_text = 8000000;  // characters per answer
const most_calls = 64;
const save_time = 5000;  // milliseconds between saves during an answer

const is_text = (value) => typeof value === "string";

// Adds a chunk to the node; ignores whatever the API's form does not have.
export function take_chunk(node, chunk) {
  if (is_text(chunk.model)) node.model = chunk.model.slice(0, 256);
  if (typeof chunk.timings === "object" && chunk.timings !== null) node.figures = chunk.timings;
  const choice = Array.isArray(chunk.choices) ? chunk.choices[0] : null;
  const delta = choice?.delta ?? {};
  if (is_text(delta.content)) node.text += delta.content;
  if (is_text(delta.reasoning_content)) node.thinking += delta.reasoning_content;
  for (const piece of Array.isArray(delta.tool_calls) ? delta.tool_calls : [])
    take_call(node, piece);
  if (is_text(choice?.finish_reason)) node.finish = choice.finish_reason;
  const size = node.text.length + node.thinking.length +
    node.calls.reduce((n, x) => n + x.arguments.length, 0);
  if (size > most_text)
    throw new api_error(`The answer has more than ${most_text} characters.`, {kind: "malformed"});
}

function take_call(node, piece) {
  const index = piece?.index;
  if (!Number.isInteger(index) || index < 0 || index >= most_calls) return;
  while (node.calls.length <= index) node.calls.push({id: "", name: "", arguments: ""});
  const call = node.calls[index];
  if (is_text(piece.id) && !call.id) call.id = piece.id.slice(0, 200);
  if (is_text(piece.function?.name)) call.name = (call.name + piece.function.name).slice(0, 200);
  if (is_text(piece.function?.arguments)) call.arguments += piece.function.arguments;
}

function note_of(error) {
  if (error.status !== 503 || !error.retry_after) return error.message;
  return `${error.message} (try again in ${error.retry_after} s)`;
}

export class chat {
  // `on_change` is called when the list of conversations or `is_busy` changes.
  constructor({store, settings, log, on_change}) {
    Object.assign(this, {store, settings, log, on_change});
    this.abort = null;  // cancels the running answer
    this.open_new();
  }

  get is_busy() { return this.abort !== null; }

  open_new() {
    this.stop();
    this.conversation = tree.new_conversation(this.conversation?.system ?? "");
    this.show();
  }

  open(id) {
    if (id === this.conversation.id) return;
    const found = this.store.load(id);
    if (!found) return toast("This conversation is no longer there.");
    this.stop();
    this.conversation = found;
    this.show();
  }

  show() {
    this.log.show(this.conversation);
    this.on_change();
  }

  save(conversation = this.conversation) {
    if (!conversation.nodes.length || conversation.is_removed) return;
    const {kept, removed} = this.store.save(conversation);
    if (!kept && !conversation.is_unkept) {
      conversation.is_unkept = true;
      toast("This conversation is larger than what the browser keeps. Export what you need of it.");
    }
    if (removed.length) {
      toast(`The oldest conversations made room: ${
        removed.map((x) => `"${x}"`).join(", ").slice(0, 200)}`);
    }
  }

  forget(id) {
    if (id === this.conversation.id) {
      this.conversation.is_removed = true;
      this.open_new();
    }
    this.store.remove(id);
    this.on_change();
  }

  forget_all() {
    this.conversation.is_removed = true;
    this.open_new();
    this.store.clear();
    this.on_change();
  }

  set_system(text) {
    this.conversation.system = text;
    this.save();
  }

  // ---- actions of the user ---------------------------------------------------------------------

  send(text) {
    if (this.is_busy) return;
    const last = tree.path_of(this.conversation).at(-1);
    const node = tree.add_node(this.conversation, last?.id ?? null, {role: "user", text});
    this.log.follows = true;
    this.generate(node.id);
  }

  // Generates another version; an empty answer is replaced.
  again(node) {
    if (this.is_busy) return;
    const is_empty = !node.text && !node.thinking && !node.calls.length;
    this.generate(node.parent, is_empty ? node : null);
  }

  edit(node, text) {
    if (this.is_busy) return toast("Stop the answer first.");
    const {role, calls, model} = node;
    const made = tree.add_node(this.conversation, node.parent, {role, text, calls, model});
    if (role === "user") return this.generate(made.id);
    this.save();
    this.show();
  }

  results(node, texts) {
    if (this.is_busy) return;
    let parent = node.id;
    node.calls.forEach((call, i) => {
      parent =
        tree.add_node(this.conversation, parent, {role: "tool", text: texts[i], call_id: call.id})
          .id;
    });
    this.generate(parent);
  }

  version(node, index) {
    if (this.is_busy) return toast("Stop the answer first.");
    const action = index < tree.version_of(this.conversation, node).index ? "earlier" : "later";
    const other = tree.show_version(this.conversation, node, index);
    this.log.follows = false;
    this.save();
    this.show();
    this.log.focus_versions(other, action);
  }

  stop() { this.abort?.abort(); }

  // ---- an answer -------------------------------------------------------------------------------

  async generate(parent, instead = null) {
    const {conversation} = this;
    const abort = this.abort = new AbortController();
    const begun = {role: "assistant", state: "running", note: "", figures: null};
    const node =
      instead ? Object.assign(instead, begun) : tree.add_node(conversation, parent, begun);
    this.save();
    this.show();
    try {
      const body = {
        ...this.settings.request_fields(),
        messages: tree.messages_to(conversation, parent)
      };
      await this.take(conversation, node,
        {...body, stream: true, stream_options: {include_usage: true}}, abort.signal);
      node.state = node.finish === "length" ? "length" : "whole";
    } catch (error) {
      if (error.name === "AbortError")
        node.state = "stopped";
      else
        node.state = node.text || node.thinking || node.calls.length ? "broken" : "failed";
      if (node.state !== "stopped") node.note = note_of(error);
    }
    delete node.finish;
    conversation.changed = Date.now();
    if (this.abort === abort) this.abort = null;
    this.save(conversation);
    if (conversation === this.conversation) this.log.show(conversation);
    this.on_change();
  }

  async take(conversation, node, body, signal) {
    let saved = performance.now();
    for await (const chunks of stream(body, signal)) {
      for (const chunk of chunks) take_chunk(node, chunk);
      if (conversation === this.conversation) this.log.draw_later(node);
      if (performance.now() - saved > save_time) {
        this.save(conversation);
        saved = performance.now();
      }
    }
  }
}
