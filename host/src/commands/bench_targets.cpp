#include "commands/bench_targets.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "commands/commands.hpp"
#include "text/items.hpp"

namespace bitnet::host {
namespace {

result<std::vector<std::string>> models_of(const invocation& in) {
  const model_and_rest words = split_positionals(in);
  if (!words.rest.empty())
    return fail(exit_code::usage,
                fmt::format("unexpected '{}'; bench takes one model, or several with -m",
                            words.rest.front()));
  if (in.set.flagged("model")) return in.set.each_text("model");
  return std::vector{words.model};
}

bool is_usable(const nlohmann::json& device) {
  return device.value("usable", false) && !device.value("fake", false);
}

// Names "cpu", or "cuda:0" and "cuda:1" for a backend with several devices.
result<std::vector<std::string>> usable_devices(const invocation& in) {
  auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  library_error err;
  const bitnet_status status = bitnet_runtime_select(runtime->get(), &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  const auto report = runtime_report(runtime->get());
  if (!report) return std::unexpected(report.error());
  std::vector<std::string> out;
  for (const auto& backend : list_of(*report, "backends")) {
    const auto devices = list_of(backend, "devices");
    for (const auto& device : devices) {
      if (!is_usable(device)) continue;
      const std::string name = any_member(backend, "name");
      out.push_back(devices.size() == 1 ? name
                                        : fmt::format("{}:{}", name, any_member(device, "index")));
    }
  }
  return out;
}

result<std::vector<std::string>> devices_of(const invocation& in) {
  if (!in.set.flag("matrix")) return std::vector<std::string>{""};
  const std::string& named = in.set.text("device");
  if (!in.set.given("device") || named == "auto") return usable_devices(in);
  std::vector<std::string> out;
  for (const std::string_view one : text::items(named)) out.emplace_back(one);
  return out;
}

}  // namespace

result<std::vector<bench_target>> bench_targets(const invocation& in) {
  const auto models = models_of(in);
  if (!models) return std::unexpected(models.error());
  const auto devices = devices_of(in);
  if (!devices) return std::unexpected(devices.error());
  std::vector<bench_target> out;
  for (const std::string& model : *models)
    for (const std::string& device : *devices) out.push_back({model, device});
  return out;
}

result<settings> settings_for(const settings& given, const bench_target& target) {
  settings out = given;
  if (target.device.empty()) return out;
  for (const auto& [name, text] :
       {std::pair{"device", target.device.c_str()}, std::pair{"allow-fallback", "false"}})
    if (auto done = out.change(name, text, "--matrix"); !done) return std::unexpected(done.error());
  return out;
}

}  // namespace bitnet::host
