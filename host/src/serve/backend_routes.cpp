#include "serve/backend_routes.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "library/handles.hpp"
#include "session/engine.hpp"
#include "session/shadow.hpp"

namespace bitnet::host {
namespace {

using http::exchange_ptr;
using nlohmann::json;
using nlohmann::ordered_json;

// ---- backends ----------------------------------------------------------------------------------

bool is_empty_text(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().empty();
}

// A backend from the runtime's report: why it was selected or not, and the state of its devices.
ordered_json backend_json(const json& of) {
  ordered_json out;
  for (const char* name : {"name", "code", "reason", "hint", "stage", "version", "vendor",
                           "license", "build_id", "abi", "devices", "generations"})
    if (const auto found = of.find(name); found != of.end() && !is_empty_text(*found))
      out[name] = *found;
  return out;
}

http::answer backends_answer(const serving& in) {
  const auto report = runtime_report(in.facts().runtime);
  if (!report) return answer_of(openai::error_of(BITNET_OUT_OF_MEMORY, report.error().message));
  ordered_json out;
  for (const char* name : {"requested", "requested_by", "detected", "selected", "device"})
    if (const auto found = report->find(name); found != report->end()) out[name] = *found;
  out["line"] = selection_line(in.facts().runtime);
  for (const served_model_ptr& one : in.all_loaded()) {
    const auto now = scheduler_report(one->texts().scheduler.get());
    if (!now) continue;
    ordered_json live = live_json(*now);
    if (bitnet_shadow* const shadow = one->facts().shadow.get())
      if (const auto compared = shadow_report(shadow)) live["shadow"] = *compared;
    if (!out.contains("live")) out["live"] = live;
    out["models"][one->facts().name] = std::move(live);
  }
  ordered_json& all = out["backends"] = ordered_json::array();
  for (const json& one : report->value("backends", json::array())) all.push_back(backend_json(one));
  return answer_of(out);
}

// ---- a reload ----------------------------------------------------------------------------------

constexpr uint32_t most_canary_rows = 1'000'000;
constexpr uint32_t longest_canary_ms = 600'000;  // admin requests queue behind it

struct reload_wish {
  std::vector<std::string> backends;  // their names
  uint32_t policy = BITNET_RELOAD_MIGRATE;
  bool force = false;
  uint32_t canary_rows = 0, canary_wait_ms = 0;  // for bitnet_reload_options
};

// The names of loaded backends, each once.
std::vector<std::string> loaded_backends(bitnet_runtime* runtime) {
  std::vector<std::string> out;
  const auto report = runtime_report(runtime);
  if (!report) return out;
  for (const json& one : report->value("backends", json::array()))
    for (const json& copy : one.value("generations", json::array()))
      if (copy.value("state", "") == "active") {
        out.push_back(one.value("name", ""));
        break;
      }
  return out;
}

openai::parsed<reload_wish> wish_of(const std::string& text, bitnet_runtime* runtime) {
  const auto body = openai::parse_object(text.empty() ? "{}" : text, "the body");
  if (!body) return std::unexpected(body.error());
  openai::field_reader in(*body);
  std::string backend, policy = "migrate";
  reload_wish out;
  in.text("backend", backend);
  in.text("policy", policy);
  in.flag("force", out.force);
  in.number("canary_rows", 0, most_canary_rows, out.canary_rows);
  in.number("canary_wait_ms", 0, longest_canary_ms, out.canary_wait_ms);
  constexpr std::array policies = {"finish", "migrate", "recompute"};  // in the order of bitnet.h
  const auto found = std::ranges::find(policies, policy);
  if (found == policies.end()) in.wrong("policy", R"("finish", "migrate" or "recompute")");
  out.policy = static_cast<uint32_t>(found - policies.begin());
  out.backends = loaded_backends(runtime);
  if (!backend.empty() && std::ranges::find(out.backends, backend) == out.backends.end())
    in.keep(openai::invalid("backend", fmt::format("'backend' expects one that is loaded: {}",
                                                   fmt::join(out.backends, ", ")))
                .error());
  if (!backend.empty()) out.backends = {backend};
  if (const auto& why = in.error()) return std::unexpected(*why);
  return out;
}

// Returns bitnet_backend_reload's report, or {"backend", "changed": false, "error"}.
json reload(bitnet_runtime* runtime, const std::string& backend, const reload_wish& how) {
  bitnet_reload_options options{};
  bitnet_reload_defaults(&options, sizeof options);
  options.policy = how.policy;
  options.force = how.force ? 1 : 0;
  options.canary_rows = how.canary_rows;
  options.canary_wait_ms = how.canary_wait_ms;
  std::string text;
  options.report_user = &text;
  options.report = [](void* to, bitnet_str line) {
    static_cast<std::string*>(to)->assign(line.data, line.size);
  };
  library_error err;
  if (bitnet_backend_reload(runtime, backend.c_str(), &options, &err) != BITNET_OK)
    return {{"backend", backend}, {"changed", false}, {"error", err.message}};
  return json::parse(text, nullptr, false);
}

http::answer reload_answer(const serving& in, const std::string& body) {
  const auto how = wish_of(body, in.facts().runtime);
  if (!how) return answer_of(how.error());
  ordered_json all = ordered_json::array();
  bool failed = false;
  for (const std::string& backend : how->backends) {
    json one = reload(in.facts().runtime, backend, *how);
    failed = failed || one.contains("error");
    in.facts().on_backend_reload(one.dump(-1, ' ', false, json::error_handler_t::replace));
    all.push_back(ordered_json(one));
  }
  http::answer out = answer_of(ordered_json{{"reloads", std::move(all)}});
  if (failed) out.status = 409;  // conflict: the backend is unchanged
  return out;
}

}  // namespace

ordered_json live_json(const json& report) {
  ordered_json out;
  for (const char* name : {"backend", "device", "max_sequences", "n_context", "running", "waiting",
                           "kv", "moves", "devices_lost"})
    if (const auto found = report.find(name); found != report.end()) out[name] = *found;
  return out;
}

void add_backends(http::route_table& to, const served& with) {
  to.add({.method = "GET",
          .paths = {"/backends", "/v1/backends"},
          .summary = "What was requested, detected and selected, and what runs",
          .handle =
              [&with](const exchange_ptr& client) {
                with.engine->answer_by(client, [](const serving& in, const std::string&) {
                  return backends_answer(in);
                });
              },
          .answer = "Backends"});
  to.add(
      {.method = "POST",
       .paths = {"/backends/reload", "/v1/backends/reload"},
       .summary = "Load a backend's file as it is now",
       .handle =
           [&with](const exchange_ptr& client) { with.engine->administer(client, reload_answer); },
       .access = http::access_level::admin,
       .answer = "Reloads",
       .conflict = "Reloads",
       .body = {{"backend", "string", "its name; all that are loaded without one"},
                {"policy", "string", "migrate, recompute or finish: what open requests do"},
                {"force", "boolean", "also where it is the file that is loaded"},
                {"canary_rows", "integer",
                 "rows of running requests that the new copy must first compute alike"},
                {"canary_wait_ms", "integer", "how long these rows may take; 0 is a minute"}}});
}

}  // namespace bitnet::host
