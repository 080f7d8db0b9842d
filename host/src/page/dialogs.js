// Questions to the user: a key, a consent, and the list of keyboard shortcuts.

import {by_id, element, icon_button} from "./dom.js";

export const shortcuts = [
  ["Enter", "Send the message"],
  ["Shift Enter", "New line"],
  ["Esc", "Stop the answer, close what is open"],
  ["/", "Go to the message field"],
  ["N", "New conversation"],
  ["H", "Show or hide the conversations"],
  ["S", "Settings"],
  ["B", "Server and backends"],
  ["?", "This list"],
];

// Opens the dialog `id` with a title and content. `on_close` is called once, however it closes.
export function open_dialog(id, title, content, on_close = () => {}) {
  const dialog = by_id(id);
  if (dialog.open) dialog.close();
  dialog.replaceChildren(
    element("div", {class: "dialog-head"}, element("h2", {id: `${id}-title`, text: title}),
      icon_button("close", "Close", () => dialog.close())),
    ...content);
  dialog.onclose = () => {
    dialog.onclose = null;
    on_close();
  };
  dialog.onclick = (event) => {
    if (event.target === dialog) dialog.close();
  };
  dialog.showModal();
  dialog.querySelector("form textarea, form input")?.focus();
  return dialog;
}

function question(title, content, verb, value_of, otherwise) {
  return new Promise((resolve) => {
    let value = otherwise;
    const give = (event) => {
      event.preventDefault();
      value = value_of();
      dialog.close();
    };
    const buttons = element("div", {class: "row"},
      element("button",
        {type: "button", class: "text-button", text: "Cancel", on: {click: () => dialog.close()}}),
      element("button", {type: "submit", class: "main-button", text: verb}));
    const form = element("form", {on: {submit: give}}, ...content, buttons);
    const dialog = open_dialog("asking", title, [form], () => resolve(value));
    form.querySelector("input, [type=submit]").focus();
  });
}

// Resolves to true for yes.
export function confirm(title, text, verb) {
  return question(title, [element("p", {text})], verb, () => true, false);
}

// Resolves to "" if no key is given.
export function ask_key(kind, was_rejected) {
  const field = element("input", {
    type: "password",
    autocomplete: "off",
    id: "key-field",
    spellcheck: "false",
    maxlength: "512"
  });
  const name = kind === "admin" ? "admin key" : "API key";
  const why =
    was_rejected ? `The server does not know this ${name}.` : `The server asks for an ${name}.`;
  return question(kind === "admin" ? "Admin key" : "API key",
    [
      element("p", {text: `${why} It is kept until this tab is closed.`}),
      element("label",
        { for: "key-field", text: kind === "admin" ? "Admin key" : "API key"
        }),
      field,
    ],
    "Use this key", () => field.value, "");
}

export function show_shortcuts() {
  const rows =
    shortcuts.map(([keys, what]) => element("tr", {},
                    element("td", {}, ...keys.split(" ").map((key) => element("kbd", {text: key}))),
                    element("td", {text: what})));
  open_dialog(
    "asking", "Keyboard", [element("table", {class: "shortcuts"}, element("tbody", {}, ...rows))]);
}
