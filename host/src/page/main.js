// Assembles the page and handles the keyboard.

import {ask, ask_keys_by} from "./api.js";
import {chat} from "./chat.js";
import {ask_key, show_shortcuts} from "./dialogs.js";
import {by_id, element, icon, icon_button} from "./dom.js";
import {history_view} from "./history_view.js";
import {log_view} from "./log_view.js";
import {panel_view} from "./panel_view.js";
import {settings_store} from "./settings.js";
import {show_settings} from "./settings_view.js";
import {browser_storage, conversation_store} from "./store.js";
import {text_nodes} from "./text.js";
import {theme_button} from "./theme.js";

const settings = new settings_store();
const store = new conversation_store(browser_storage());
const field = by_id("message");
let defaults = {};
let conversations = null;

ask_keys_by(ask_key);

const log = new log_view({
  again: (node) => talk.again(node),
  edit: (node, text) => talk.edit(node, text),
  version: (node, index) => talk.version(node, index),
  results: (node, texts) => talk.results(node, texts),
});
const send_button = element("button",
  {type: "submit", id: "send", class: "round", "aria-label": "Send", title: "Send"}, icon("send"));
const stop_button = element("button", {
  type: "button",
  id: "stop",
  class: "round",
  "aria-label": "Stop",
  title: "Stop (Esc)",
  hidden: true,
  on: {click: () => talk.stop()},
},
  icon("stop"));

const talk = new chat({store, settings, log, on_change: () => show_state()});
const panel = new panel_view();
conversations = new history_view(talk);

// ---- what is shown -----------------------------------------------------------------------------

function show_state() {
  if (!conversations) return queueMicrotask(show_state);  // the page is being assembled
  const {conversation, is_busy} = talk;
  conversations.show();
  send_button.hidden = is_busy;
  stop_button.hidden = !is_busy;
  by_id("welcome").hidden = conversation.nodes.length > 0;
  document.body.classList.toggle("is-new", conversation.nodes.length === 0);
  document.title = conversation.title ? `${conversation.title} · bitnet` : "bitnet";
  const system = conversation.system.trim();
  by_id("system").replaceChildren(...system ?
      [element("details", {}, element("summary", {text: "System prompt"}),
        element("p", {dir: "auto"}, ...text_nodes(system)))] :
      []);
}

async function show_models() {
  let names = [];
  try {
    names = (await ask("v1/models", {quiet: true}))
              .data.map((one) => one.id)
              .filter((x) => typeof x === "string");
  } catch {
    // The first message will show the error.
  }
  const place = by_id("top-model");
  if (names.length < 2) {
    settings.set("model", "");
    place.replaceChildren(element("span", {class: "model"}, ...text_nodes(names[0] ?? "bitnet")));
    return;
  }
  const choice = element("select", {id: "model", "aria-label": "Model"},
    ...names.slice(0, 500).map((name) => element("option", {value: name, text: name})));
  if (!names.includes(settings.values.model)) settings.set("model", names[0]);
  choice.value = settings.values.model;
  choice.addEventListener("change", () => settings.set("model", choice.value));
  place.replaceChildren(choice);
}

async function open_settings() {
  try {
    const props = await ask("props", {quiet: true});
    defaults = props?.default_generation_settings?.params ?? {};
  } catch {
    // The fields then show no defaults of the server.
  }
  show_settings({settings, chat: talk, defaults});
  by_id("settings").addEventListener("close", () => show_state(), {once: true});
}

// Wide windows show it beside the messages, narrow ones above them.
function toggle_history() {
  const is_narrow = matchMedia("(max-width: 800px)").matches;
  document.body.classList.toggle(is_narrow ? "shows-history" : "hides-history");
  const is_shown = is_narrow ? document.body.classList.contains("shows-history") :
                               !document.body.classList.contains("hides-history");
  by_id("history-button").setAttribute("aria-expanded", String(is_shown));
  if (is_shown) by_id("history").querySelector("button")?.focus();
}

function open_new() {
  document.body.classList.remove("shows-history");
  talk.open_new();
  field.focus();
}

// ---- the message field -------------------------------------------------------------------------

function fit_field() {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, innerHeight * 0.4)}px`;
}

function send() {
  const text = field.value.trim();
  if (!text || talk.is_busy) return;
  field.value = "";
  fit_field();
  talk.send(text);
}

field.addEventListener("input", fit_field);
field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
by_id("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
by_id("composer-buttons").append(send_button, stop_button);

// ---- the keyboard ------------------------------------------------------------------------------

const keys = {
  "/": () => field.focus(),
  n: open_new,
  h: toggle_history,
  s: open_settings,
  b: () => panel.toggle(),
  "?": show_shortcuts,
};

function on_escape() {
  if (talk.is_busy) return talk.stop();
  if (!by_id("panel").hidden) return panel.toggle(false);
  if (document.body.classList.contains("shows-history")) toggle_history();
}

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;  // it closes itself
  if (event.key === "Escape") return on_escape();
  const is_typing = event.target.matches?.("input, textarea, select");
  if (is_typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const call = keys[event.key.toLowerCase()];
  if (!call) return;
  event.preventDefault();
  call();
});

// ---- permanent parts ---------------------------------------------------------------------------

by_id("history-head")
  .append(
    element("button", {type: "button", id: "new", class: "main-button", on: {click: open_new}},
      icon("plus"), "New conversation"));
by_id("top-left")
  .append(icon_button("menu", "Conversations", toggle_history,
    {id: "history-button", "aria-controls": "history", "aria-expanded": "true"}));
by_id("top-right")
  .append(icon_button("chip", "Server and backends", () => panel.toggle(),
            {id: "panel-button", "aria-controls": "panel", "aria-expanded": "false"}),
    icon_button("gear", "Settings", open_settings, {id: "settings-button"}),
    icon_button("keys", "Keyboard shortcuts", show_shortcuts, {id: "keys-button"}),
    theme_button(settings));
by_id("welcome").append(element("p", {class: "welcome-title", text: "Write a message to begin"}),
  element("p", {text: "Answers come from the model of this server. Press ? for the keyboard."}));
by_id("chat").addEventListener("click", (event) => {
  if (document.body.classList.contains("shows-history") && !event.target.closest("#top-left"))
    toggle_history();
});
addEventListener("pagehide", () => talk.save());
addEventListener("storage", () => show_state());

show_state();
show_models();
field.focus();
document.documentElement.dataset.ready = "true";
