// The server's panel: running backend, requested and detected backends, counts. A part is left out
// if its route is missing or returns nothing.

import {ask} from "./api.js";
import {by_id, element, icon, icon_button, toast} from "./dom.js";
import {parse_metrics, total_of} from "./metrics.js";
import {text_nodes} from "./text.js";

const turn = 3000;  // milliseconds between updates
const most_rows = 200;
const deepest = 4;

const is_object = (x) => typeof x === "object" && x !== null && !Array.isArray(x);
const first_of = (of, ...names) =>
  names.map((name) => of?.[name]).find((x) => x !== undefined && x !== null);

function bytes_text(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit + 1 < units.length; ++unit) n /= 1024;
  return `${n < 10 && unit ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

function value_text(name, value) {
  if (typeof value === "number" && /bytes$|^size$|^memory/.test(name)) return bytes_text(value);
  if (typeof value === "number") return `${Math.round(value * 100) / 100}`;
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}

const words_of = (name) =>
  name.replace(/_bytes$/, "").replaceAll("_", " ").replace(/^\w/, (x) => x.toUpperCase());

// Names and values of an object; nested ones are named "Outer inner".
function rows_of(of, before = "", depth = 0) {
  const out = [];
  for (const [name, value] of Object.entries(of).slice(0, most_rows)) {
    const label = before ? `${before} ${name.replaceAll("_", " ")}` : words_of(name);
    if (value === null || value === "") continue;
    if (typeof value !== "object")
      out.push([label, value_text(name, value)]);
    else if (depth < deepest && Array.isArray(value) && !value.some((x) => typeof x === "object")) {
      if (value.length) out.push([label, value.join(", ")]);
    } else if (depth < deepest) {
      const inside = Array.isArray(value) ? Object.fromEntries(value.map((x, i) => [i, x])) : value;
      out.push(...rows_of(inside, label, depth + 1));
    }
  }
  return out.slice(0, most_rows);
}

function facts_list(rows) {
  const pairs = rows.flatMap(([
    name, value
  ]) => [element("dt", {text: name}), element("dd", {dir: "auto"}, ...text_nodes(String(value)))]);
  return element("dl", {}, ...pairs);
}

function section(title, ...content) {
  return element("section", {}, element("h3", {text: title}), ...content);
}

// ---- parts: each function returns its elements, or null ----------------------------------------

function model_part(props, models) {
  const model = models?.data?.[0];
  const settings = props?.default_generation_settings ?? {};
  const rows = [
    ["Model", first_of(props, "model_alias") ?? model?.id],
    ["Parameters", model?.meta?.n_params?.toLocaleString?.("en")],
    ["Weights", Number.isFinite(model?.meta?.size) ? bytes_text(model.meta.size) : undefined],
    ["Context", settings.n_ctx && `${settings.n_ctx} tokens`],
    ["Requests at once", props?.total_slots],
    ["Program", props?.build_info],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== 0);
  return rows.length ? section("Model", facts_list(rows)) : null;
}

function meter_row(label, part) {
  const percent = Math.round(part * 100);
  return element("div", {class: "meter-row"}, element("span", {text: label}),
    element("meter", {min: 0, max: 1, high: 0.85, value: part, "aria-label": label}),
    element("span", {text: `${percent} %`}));
}

function load_part(metrics, rate) {
  if (!metrics.size) return null;
  const kv = total_of(metrics, "vllm:kv_cache_usage_perc");
  const queries = total_of(metrics, "vllm:prefix_cache_queries_total");
  const hits = total_of(metrics, "vllm:prefix_cache_hits_total");
  const rows = [
    ["Running", total_of(metrics, "vllm:num_requests_running")],
    ["Waiting", total_of(metrics, "vllm:num_requests_waiting")],
    ["Tokens/s now", rate === null ? undefined : rate.toFixed(1)],
    ["Tokens written", total_of(metrics, "vllm:generation_tokens_total")],
    ["Prompt tokens known", queries > 0 ? `${Math.round(100 * hits / queries)} %` : undefined],
  ].filter(([, value]) => value !== undefined);
  if (!rows.length && kv === undefined) return null;
  return section("Load",
    kv === undefined ? null : meter_row("Keys and values", Math.min(1, Math.max(0, kv))),
    facts_list(rows));
}

function candidate_item(one, selected) {
  if (!is_object(one)) return element("li", {}, ...text_nodes(String(one)));
  const name = String(first_of(one, "name", "backend", "id") ?? "?");
  const is_selected = name === selected || one.selected === true;
  const state = first_of(one, "state", "status", "stage");
  const why = first_of(one, "reason", "why", "message");
  return element("li", {class: is_selected ? "selected" : null},
    element("span", {class: "name"}, ...text_nodes(name)),
    element(
      "span", {class: "state"}, ...text_nodes(is_selected ? "selected" : String(state ?? ""))),
    why ? element(
            "p", {dir: "auto"}, ...text_nodes(is_object(why) ? JSON.stringify(why) : String(why))) :
          null);
}

function choice_text(value) {
  if (Array.isArray(value)) return value.map(choice_text).join(", ");
  if (is_object(value))
    return String(first_of(value, "name", "backend", "device", "id") ?? JSON.stringify(value));
  return String(value);
}

function backends_part(backends, metrics) {
  if (!is_object(backends)) {
    const rows = (metrics.get("bitnet_backend_info") ?? [])
                   .map(({labels}) => [labels.backend || "Backend", labels.device ?? ""])
                   .filter(([, x]) => x);
    return rows.length ? [section("Backend", facts_list(rows))] : [];
  }
  const {detected} = backends;
  const names = Array.isArray(detected) && !detected.some(is_object) ? ["detected"] : [];
  const chosen = ["requested", ...names, "selected", "device"]
                   .filter((name) => backends[name] !== undefined && backends[name] !== null)
                   .map((name) => [words_of(name), choice_text(backends[name])]);
  const selected = backends.selected === undefined ? "" : choice_text(backends.selected);
  const items = [backends.backends, backends.candidates, detected]
                  .find((x) => Array.isArray(x) && x.some(is_object)) ?? [];
  const shown = items.slice(0, most_rows).map((one) => candidate_item(one, selected));
  const out = [section("Backends", facts_list(chosen),
    shown.length ? element("ul", {class: "candidates"}, ...shown) : null)];
  const live = backends.live;
  if (is_object(live) || Array.isArray(live)) {
    const rows =
      rows_of(Array.isArray(live) ? Object.fromEntries(live.map((x, i) => [i, x])) : live);
    if (rows.length) out.push(section("What runs where", facts_list(rows)));
  }
  return out;
}

// ---- the panel ---------------------------------------------------------------------------------

// null if the route is missing or rejects the request.
async function asked(path) {
  try {
    return await ask(path, {quiet: true});
  } catch { return null; }
}

export class panel_view {
  constructor() {
    this.place = by_id("panel");
    this.body = element("div", {class: "panel-body"});
    this.place.append(element("div", {class: "dialog-head"}, element("h2", {text: "Server"}),
                        icon_button("close", "Close", () => this.toggle(false))),
      this.body);
    this.reload = element("button",
      {type: "button", class: "text-button", on: {click: () => this.reload_backend()}},
      icon("again"), "Reload the backend");
    this.timer = 0;
    this.before = null;  // {tokens, time} at the last update
  }

  toggle(is_open = this.place.hidden) {
    this.place.hidden = !is_open;
    document.body.classList.toggle("shows-panel", is_open);
    by_id("panel-button").setAttribute("aria-expanded", String(is_open));
    clearTimeout(this.timer);
    if (!is_open) return by_id("panel-button").focus();
    this.look();
    this.place.querySelector("button").focus();
  }

  async look() {
    const [props, models, text, backends] =
      await Promise.all([asked("props"), asked("v1/models"), asked("metrics"), asked("backends")]);
    if (this.place.hidden) return;
    this.show(props, models, parse_metrics(typeof text === "string" ? text : ""), backends);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), turn);
  }

  rate_of(metrics) {
    const tokens = total_of(metrics, "vllm:generation_tokens_total");
    if (tokens === undefined) return null;
    const now = {tokens, time: performance.now()};
    const {before} = this;
    this.before = now;
    if (!before || tokens < before.tokens) return null;
    return (tokens - before.tokens) / ((now.time - before.time) / 1000);
  }

  show(props, models, metrics, backends) {
    const parts = [
      ...backends_part(backends, metrics), load_part(metrics, this.rate_of(metrics)),
      model_part(props, models)
    ].filter((x) => x);
    if (!parts.length)
      parts.push(element("p", {
        text: "The server says nothing of itself. It may want an API key: send a message first."
      }));
    const {scrollTop} = this.body;
    const had_focus = document.activeElement === this.reload;
    this.body.replaceChildren(...parts);
    if (is_object(backends)) this.body.append(element("div", {class: "row"}, this.reload));
    if (had_focus) this.reload.focus();
    this.body.scrollTop = scrollTop;
  }

  async reload_backend() {
    this.reload.disabled = true;
    try {
      await ask("backends/reload", {method: "POST", body: {}, kind: "admin"});
      toast("The backend is reloaded.");
    } catch (error) { toast(error.message); }
    this.reload.disabled = false;
    this.look();
  }
}
