// The settings form. Changes apply from the next message on.

import {open_dialog} from "./dialogs.js";
import {element} from "./dom.js";
import {number_fields, number_of, tool_choices, tools_of} from "./settings.js";

function with_label(id, label, help, field) {
  field.id = id;
  field.setAttribute("aria-describedby", `${id}-help`);
  return element("div", {class: "field"}, element("label", { for: id, text: label
  }), field, element("p", {class: "help", id: `${id}-help`, text: help}));
}

// Writes the result of `read` for the field's text. If `read` throws, shows the error and writes
// nothing.
function checked(field, help_of, read, write) {
  field.addEventListener("input", () => {
    let why = "";
    try {
      write(read(field.value));
    } catch (error) { why = error.message; }
    field.setAttribute("aria-invalid", why ? "true" : "false");
    const help = document.getElementById(`${field.id}-help`);
    help.textContent = why || help_of;
    help.classList.toggle("trouble", why !== "");
  });
  return field;
}

function number_view(field, settings, defaults) {
  const id = `setting-${field.name}`;
  const server = defaults[field.server];
  const input = element("input", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    placeholder: Number.isFinite(server) && server >= 0 ? `${Number(server.toFixed(4))}` :
                                                          "server's choice",
  });
  input.value = settings.values[field.name] ?? "";
  checked(input, field.help, (text) => number_of(field, text),
    (value) => settings.set(field.name, value));
  return with_label(id, field.label, field.help, input);
}

function tools_view(settings) {
  const help =
    "A JSON list of functions: [{\"name\": ..., \"description\": ..., \"parameters\": {...}}]";
  const input = element("textarea", {rows: 4, spellcheck: "false", dir: "ltr", class: "source"});
  input.value = settings.values.tools;
  checked(input, help, (text) => (tools_of(text), text), (text) => settings.set("tools", text));
  const choice = element("select", {on: {change: () => settings.set("tool_choice", choice.value)}},
    ...tool_choices.map((one) => element("option", {value: one, text: one})));
  choice.value = settings.values.tool_choice;
  return [
    with_label("setting-tools", "Tools", help, input),
    with_label("setting-tool_choice", "Tool choice",
      "Whether the model may, must or must not call one", choice)
  ];
}

// `defaults`: the members of /props with the server's own values.
export function show_settings({settings, chat, defaults}) {
  const system =
    element("textarea", {rows: 4, dir: "auto", on: {input: () => chat.set_system(system.value)}});
  system.value = chat.conversation.system;
  const reset = () => {
    for (const field of number_fields) settings.set(field.name, undefined);
    show_settings({settings, chat, defaults});
  };
  const form = element("form", {on: {submit: (event) => event.preventDefault()}},
    with_label("setting-system", "System prompt", "Stands before this conversation", system),
    element(
      "div", {class: "grid"}, ...number_fields.map((one) => number_view(one, settings, defaults))),
    ...tools_view(settings),
    element("div", {class: "row"},
      element("button",
        {type: "button", class: "text-button", text: "Server's sampling", on: {click: reset}})));
  open_dialog("settings", "Settings", [form]);
}
