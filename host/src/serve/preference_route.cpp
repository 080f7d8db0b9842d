#include "serve/preference_route.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "library/handles.hpp"
#include "serve/backend_routes.hpp"
#include "session/engine.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t most_device_bytes = 1024;

openai::parsed<std::string> device_of(const std::string& text) {
  const auto body = openai::parse_object(text.empty() ? "{}" : text, "the body");
  if (!body) return std::unexpected(body.error());
  openai::field_reader in(*body);
  std::string out;
  in.text("device", out);
  const bool is_list =
      !out.empty() && out.size() <= most_device_bytes && out.find('\0') == std::string::npos;
  if (!is_list)
    in.wrong("device", R"(devices as --device names them, such as "cpu" or "cuda,cpu")");
  if (const auto& why = in.error()) return std::unexpected(*why);
  return out == "none" ? "cpu" : out;  // as for --device
}

// The device of a scheduler: "cpu:0".
std::string device_of(bitnet_scheduler* scheduler) {
  const auto report = scheduler_report(scheduler);
  return report ? report->value("device", "") : "";
}

std::string detected_in(bitnet_runtime* runtime) {
  const auto report = runtime_report(runtime);
  std::vector<std::string> names;
  if (report)
    for (const json& one : report->value("detected", json::array()))
      if (one.is_string()) names.push_back(one.get<std::string>());
  return names.empty() ? "no backend" : fmt::format("{}", fmt::join(names, ", "));
}

// The list is invalid, or a device in it cannot be used now: nothing has changed.
http::answer rejected_answer(const serving& in, bitnet_status status, const std::string& why) {
  openai::api_error out = openai::error_of(BITNET_INVALID_ARGUMENT, why, "device");
  if (status == BITNET_INVALID_ARGUMENT) return answer_of(out);
  out.status = 409;
  out.code = "device_unavailable";
  out.message = fmt::format("{}. Detected: {}", why, detected_in(in.facts().runtime));
  return answer_of(out);
}

// The schedulers of all loaded models, which this object keeps loaded.
struct preferring {
  std::vector<served_model_ptr> models;
  std::vector<bitnet_scheduler*> lanes;  // those of texts come first
};

// In the loop.
preferring preferring_of(const serving& in) {
  preferring out{.models = in.all_loaded(), .lanes = {}};
  for (const served_model_ptr& one : out.models) out.lanes.push_back(one->texts().scheduler.get());
  for (const served_model_ptr& one : out.models)
    if (const serving_lane* const more = one->embeddings())
      out.lanes.push_back(more->scheduler.get());
  return out;
}

http::answer preference_answer(const serving& in, const std::string& body,
                               const std::vector<bitnet_scheduler*>& lanes) {
  const auto device = device_of(body);
  if (!device) return answer_of(device.error());
  if (lanes.empty()) return not_loaded_answer();
  ordered_json out = {{"requested", *device}, {"changed", false}};
  std::vector<std::string> former;
  for (bitnet_scheduler* const one : lanes) {
    former.push_back(device_of(one));
    library_error err;
    const bitnet_status status = bitnet_scheduler_set_preference(one, device->c_str(), &err);
    if (status == BITNET_OK) continue;
    // Restore the former preferences.
    for (std::size_t i = 0; i + 1 < former.size(); ++i)
      static_cast<void>(bitnet_scheduler_set_preference(lanes[i], former[i].c_str(), nullptr));
    return rejected_answer(in, status, err.message);
  }
  out["former_device"] = former.front();
  const auto now = scheduler_report(lanes.front());
  out["live"] = live_json(now ? *now : json::object());
  out["changed"] = out["live"].value("device", "") != former.front();
  in.facts().on_preference(
      fmt::format("{}: {}, after {}", *device, out["live"].value("device", ""), former.front()));
  return answer_of(out);
}

}  // namespace

void add_preference(http::route_table& to, const served& with) {
  to.add(
      {.method = "POST",
       .paths = {"/backends/prefer", "/v1/backends/prefer"},
       .summary = "Let requests go on with another device",
       .handle =
           [&with](const http::exchange_ptr& client) {
             with.engine->administer(client, [of = preferring_of(*with.engine)](
                                                 const serving& in, const std::string& body) {
               return preference_answer(in, body, of.lanes);
             });
           },
       .access = http::access_level::admin,
       .answer = "Preference",
       .body = {{"device", "string", "one or several, in order, as --device names them", true}}});
}

}  // namespace bitnet::host
