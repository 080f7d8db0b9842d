// A conversation: a tree of messages, of which one path from the root is shown. Each path is a
// version: an edited or regenerated message stays beside its successor.
//
// node: {id, parent, role: "user" | "assistant" | "tool", text, thinking, calls: [{id, name,
// arguments}], call_id (of a tool's result), state, note, figures, model, created}. `parent` null:
// one of the first messages. A parent stands before its children in `nodes`.

export const states = ["whole", "running", "stopped", "length", "broken", "failed"];

export function new_id() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return Array.from(bytes, (x) => x.toString(36).padStart(2, "0")).join("");
}

export function new_conversation(system = "") {
  const now = Date.now();
  return {id: new_id(), title: "", system, created: now, changed: now, nodes: [], shown: {}};
}

export function children_of(conversation, parent) {
  return conversation.nodes.filter((node) => node.parent === parent);
}

export function node_of(conversation, id) {
  return conversation.nodes.find((node) => node.id === id) ?? null;
}

// The new message is shown from now on.
export function add_node(conversation, parent, fields) {
  const node = {
    id: new_id(),
    parent,
    role: "user",
    text: "",
    thinking: "",
    calls: [],
    call_id: "",
    state: "whole",
    note: "",
    figures: null,
    model: "",
    created: Date.now(),
    ...fields,
  };
  conversation.nodes.push(node);
  conversation.shown[parent ?? ""] = node.id;
  conversation.changed = node.created;
  if (!conversation.title && node.role === "user") conversation.title = title_of(node.text);
  return node;
}

export function title_of(text) {
  const line = text.trim().split("\n", 1)[0].replace(/\s+/g, " ");
  return line.length > 60 ? Array.from(line.slice(0, 120)).slice(0, 59).join("") + "…" : line;
}

// The shown nodes, from the root down.
export function path_of(conversation) {
  const children = new Map();
  for (const node of conversation.nodes) {
    const key = node.parent ?? "";
    if (!children.has(key)) children.set(key, []);
    children.get(key).push(node);
  }
  const out = [];
  for (let at = ""; children.has(at); at = out.at(-1).id) {
    const all = children.get(at);
    out.push(all.find((node) => node.id === conversation.shown[at]) ?? all.at(-1));
  }
  return out;
}

// The index of a node among its versions, and their number.
export function version_of(conversation, node) {
  const all = children_of(conversation, node.parent);
  return {index: all.indexOf(node), count: all.length, all};
}

export function show_version(conversation, node, index) {
  const {all} = version_of(conversation, node);
  const other = all[Math.max(0, Math.min(index, all.length - 1))];
  conversation.shown[node.parent ?? ""] = other.id;
  return other;
}

// The nodes from the root down to `id`, inclusive.
export function line_to(conversation, id) {
  const out = [];
  for (let node = node_of(conversation, id); node; node = node_of(conversation, node.parent)) {
    out.unshift(node);
  }
  return out;
}

function message_of(node) {
  if (node.role === "tool") return {role: "tool", tool_call_id: node.call_id, content: node.text};
  if (node.role === "user") return {role: "user", content: node.text};
  const out = {role: "assistant", content: node.text};
  if (node.calls.length) {
    out.tool_calls = node.calls.map((call) => ({
      id: call.id,
      type: "function",
      function: {name: call.name, arguments: call.arguments},
    }));
  }
  return out;
}

// The messages to send for an answer after `id`; answers without text and calls are left out.
export function messages_to(conversation, id) {
  const out = conversation.system.trim() ? [{role: "system", content: conversation.system}] : [];
  for (const node of line_to(conversation, id)) {
    if (node.role !== "assistant" || node.text || node.calls.length) out.push(message_of(node));
  }
  return out;
}

// ---- contents of files and of storage -----------------------------------------------------------

function text_of(value, what, most = 8e6) {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new Error(`${what} is no text`);
  return value.slice(0, most);
}

function time_of(value) {
  return Number.isFinite(value) && value > 0 && value < 8e15 ? value : Date.now();
}

function figures_of(value) {
  if (typeof value !== "object" || value === null) return null;
  const out = {};
  for (const name of ["prompt_n", "cache_n", "predicted_n", "predicted_per_second", "prompt_ms"]) {
    if (Number.isFinite(value[name])) out[name] = value[name];
  }
  return out;
}

function checked_call(value, what) {
  if (typeof value !== "object" || value === null) throw new Error(`${what} is no call`);
  return {
    id: text_of(value.id, `${what}.id`, 200),
    name: text_of(value.name, `${what}.name`, 200),
    arguments: text_of(value.arguments, `${what}.arguments`),
  };
}

function checked_node(value, known, what) {
  if (typeof value !== "object" || value === null) throw new Error(`${what} is no message`);
  if (!/^[\w-]{1,64}$/.test(value.id) || known.has(value.id))
    throw new Error(`${what} has no id of its own`);
  const parent = value.parent ?? null;
  if (parent !== null && !known.has(parent))
    throw new Error(`${what} answers a message that is not above it`);
  if (!["user", "assistant", "tool"].includes(value.role))
    throw new Error(`${what} has an unknown role`);
  known.add(value.id);
  const state = states.includes(value.state) ? value.state : "whole";
  return {
    id: value.id,
    parent,
    role: value.role,
    text: text_of(value.text, `${what}.text`),
    thinking: text_of(value.thinking, `${what}.thinking`),
    calls: (Array.isArray(value.calls) ? value.calls.slice(0, 64) : [])
      .map((call, i) => checked_call(call, `${what}.calls[${i}]`)),
    call_id: text_of(value.call_id, `${what}.call_id`, 200),
    state: state === "running" ? "stopped" : state,  // the page was closed meanwhile
    note: text_of(value.note, `${what}.note`, 2000),
    figures: figures_of(value.figures),
    model: text_of(value.model, `${what}.model`, 256),
    created: time_of(value.created),
  };
}

// A conversation from untrusted JSON, with known members only. Throws if it is not one.
export function checked_conversation(value, what = "the conversation") {
  if (typeof value !== "object" || value === null || !Array.isArray(value.nodes)) {
    throw new Error(`${what} has no messages`);
  }
  if (value.nodes.length > 20000) throw new Error(`${what} has more than 20000 messages`);
  const known = new Set();
  const nodes = value.nodes.map((node, i) => checked_node(node, known, `${what}.nodes[${i}]`));
  const shown = {};
  for (const [parent, id] of Object.entries(value.shown ?? {})) {
    if ((parent === "" || known.has(parent)) && known.has(id)) shown[parent] = id;
  }
  return {
    id: /^[\w-]{1,64}$/.test(value.id) ? value.id : new_id(),
    title: text_of(value.title, `${what}.title`, 200),
    system: text_of(value.system, `${what}.system`),
    created: time_of(value.created),
    changed: time_of(value.changed),
    nodes,
    shown,
  };
}
