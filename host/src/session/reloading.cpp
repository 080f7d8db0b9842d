#include "session/reloading.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "basic/json.hpp"
#include "system/limits.hpp"

namespace bitnet::host {
namespace {

uint32_t policy_of(const settings& set) {
  const std::string& name = set.text("reload-policy");
  return name == "migrate"     ? BITNET_RELOAD_MIGRATE
         : name == "recompute" ? BITNET_RELOAD_RECOMPUTE
                               : BITNET_RELOAD_FINISH;
}

std::string line_of(const nlohmann::json& report) {
  const std::string backend = report.value("backend", "");
  if (!report.value("changed", false))
    return fmt::format("{}: nothing to do, {}", backend, report.value("reason", ""));
  std::string line = fmt::format("{}: reloaded", backend);
  const std::string version = report.value("version", ""),
                    former = report.value("former_version", "");
  if (version != former && !former.empty())
    line += fmt::format(", version {} in place of {}", version, former);
  if (report.contains("generation"))
    line += fmt::format(", generation {}", report.value("generation", 0U));
  if (report.contains("build_id"))
    line += fmt::format(", build id {}", report.value("build_id", ""));
  const auto sessions = report.value("sessions", nlohmann::json::object());
  if (const auto n = sessions.value("moving", 0U); n != 0)
    line += fmt::format(", {} session{} to it", n, n == 1 ? " moves" : "s move");
  if (const auto n = sessions.value("staying", 0U); n != 0)
    line += fmt::format(", {} session{} on the former copy", n, n == 1 ? " stays" : "s stay");
  return line;
}

}  // namespace

result<std::string> reload_backend(bitnet_runtime* runtime, const std::string& backend,
                                   const settings& set) {
  bitnet_reload_options options{};
  bitnet_reload_defaults(&options, sizeof options);
  options.policy = policy_of(set);
  std::string text;
  options.report_user = &text;
  options.report = [](void* to, bitnet_str report) {
    static_cast<std::string*>(to)->assign(report.data, report.size);
  };
  library_error err;
  const bitnet_status status = bitnet_backend_reload(runtime, backend.c_str(), &options, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  auto report = parse_json(text);
  if (!report) return std::unexpected(report.error());
  return line_of(*report);
}

std::vector<loaded_copy> loaded_copies(bitnet_runtime* runtime) {
  std::vector<loaded_copy> out;
  const auto report = runtime_report(runtime);
  if (!report) return out;
  for (const auto& b : report->value("backends", nlohmann::json::array())) {
    for (const auto& copy : b.value("generations", nlohmann::json::array())) {
      const std::string state = copy.value("state", "");
      if (state != "active" && state != "draining" && state != "retired") continue;
      out.push_back({b.value("name", ""), b.value("library", ""), b.value("manifest", ""), state,
                     copy.value("build_id", ""), b.value("library_named", b.value("library", "")),
                     copy.value("number", 0U)});
    }
  }
  return out;
}

result<std::unique_ptr<watcher>> watch_backends(const invocation& in, bitnet_runtime* runtime) {
  if (!in.set.flag("watch")) return std::unique_ptr<watcher>();
  const auto files = [runtime] {
    std::set<std::string> out;
    for (const loaded_copy& copy : loaded_copies(runtime))
      if (copy.state == "active") out.insert({copy.named, copy.manifest});
    return out;
  };
  const auto reload = [&in, runtime] {
    std::set<std::string> done;
    for (const loaded_copy& copy : loaded_copies(runtime)) {
      if (copy.state != "active" || !done.insert(copy.backend).second) continue;
      // The library itself logs why a reload was rejected.
      if (const auto line = reload_backend(runtime, copy.backend, in.set)) in.out.note(*line);
    }
  };
  try {
    return std::make_unique<watcher>(files, reload, watcher::pace{});
  } catch (const std::system_error& e) {
    return fail(exit_code::failure,
                fmt::format("--watch needs a thread of its own, and the system makes none: {}; "
                            "raise the limit, or leave --watch out",
                            limits::shortage(e.code().value())));
  }
}

}  // namespace bitnet::host
