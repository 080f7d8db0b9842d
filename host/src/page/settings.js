// The user's settings: sampling, tools, the model. An empty field leaves the value to the server.

import {browser_storage} from "./store.js";

const key = "bitnet.settings";

// Numeric fields of a request. `server`: the member of /props with the server's value.
export const number_fields = [
  {
    name: "temperature",
    label: "Temperature",
    min: 0,
    max: 5,
    step: 0.05,
    server: "temperature",
    help: "0: always the most probable token"
  },
  {
    name: "top_p",
    label: "Top-p",
    min: 0,
    max: 1,
    step: 0.01,
    server: "top_p",
    help: "The most probable tokens of this sum of probabilities"
  },
  {
    name: "top_k",
    label: "Top-k",
    min: 0,
    max: 1000000,
    step: 1,
    server: "top_k",
    help: "So many of the most probable tokens; 0: all"
  },
  {
    name: "min_p",
    label: "Min-p",
    min: 0,
    max: 1,
    step: 0.01,
    server: "min_p",
    help: "At least this part of the most probable token's probability"
  },
  {
    name: "max_tokens",
    label: "Tokens at most",
    min: 1,
    max: 1000000,
    step: 1,
    server: "n_predict",
    help: "Of an answer"
  },
  {
    name: "seed",
    label: "Seed",
    min: 0,
    max: 4294967295,
    step: 1,
    server: "",
    help: "The same seed gives the same text"
  },
];

export const tool_choices = ["auto", "required", "none"];

// Parses a list of tools; [] for none. Throws if the text is not a list of tools.
export function tools_of(text) {
  if (!text.trim()) return [];
  let out;
  try {
    out = JSON.parse(text);
  } catch (error) { throw new Error(`Tools are a JSON list: ${error.message}`); }
  if (!Array.isArray(out)) throw new Error("Tools are a JSON list, which begins with [");
  return out.map((one, i) => {
    const tool = one?.type === "function" ? one : {type: "function", function: one};
    if (typeof tool.function?.name !== "string" || !tool.function.name) {
      throw new Error(`Tool ${i + 1} has no name: expected {"name": ..., "parameters": ...}`);
    }
    return tool;
  });
}

// undefined for an empty text. Throws if the text is not a valid number for the field.
export function number_of(field, text) {
  if (String(text).trim() === "") return undefined;
  const value = Number(text);
  const is_whole = field.step === 1;
  if (!Number.isFinite(value) || value < field.min || value > field.max ||
    (is_whole && !Number.isInteger(value))) {
    throw new Error(`${field.label} is a ${is_whole ? "whole " : ""}number from ${field.min} to ${
      field.max}; found ${text}`);
  }
  return value;
}

export class settings_store {
  constructor(storage = browser_storage()) {
    this.storage = storage;
    this.values = {tools: "", tool_choice: "auto", model: "", theme: "auto"};
    try {
      const read = JSON.parse(storage?.getItem(key) ?? "{}");
      for (const name
             of ["tools", "tool_choice", "model", "theme", ...number_fields.map((x) => x.name)]) {
        if (["string", "number"].includes(typeof read[name])) this.values[name] = read[name];
      }
    } catch {
      // The stored settings are damaged: use the defaults.
    }
  }

  set(name, value) {
    if (value === undefined)
      delete this.values[name];
    else
      this.values[name] = value;
    try {
      this.storage?.setItem(key, JSON.stringify(this.values));
    } catch {
      // Storage is full: the settings last as long as the page.
    }
  }

  // Returns the members of a request.
  request_fields() {
    const out = {};
    for (const field of number_fields) {
      try {
        const value = number_of(field, this.values[field.name] ?? "");
        if (value !== undefined) out[field.name] = value;
      } catch {
        // Stored by another version.
      }
    }
    if (this.values.model) out.model = this.values.model;
    const tools = tools_of(String(this.values.tools));
    if (tools.length) {
      out.tools = tools;
      if (tool_choices.includes(this.values.tool_choice)) out.tool_choice = this.values.tool_choice;
    }
    return out;
  }
}
