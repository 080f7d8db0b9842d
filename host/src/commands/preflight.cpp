// bitnet preflight: checks whether a backend is usable here, as an exit code for scripts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int not_usable = 1;  // also for a fallback

// Sets --backend as the request, and --require as the demand that it must be met.
result<settings> settings_asked(const settings& given) {
  settings out = given;
  if (const std::string& name = given.text("backend"); !name.empty())
    if (auto done = out.change("device", name, "--backend"); !done)
      return std::unexpected(done.error());
  if (given.flag("require"))
    if (auto done = out.change("require-backend", "true", "--require"); !done)
      return std::unexpected(done.error());
  return out;
}

json named(const json& report, const std::string& backend) {
  for (const json& one : list_of(report, "backends"))
    if (any_member(one, "name") == backend) return one;
  return json::object();
}

// The selected device: "cuda:0" of the backend "cuda".
json chosen_device(const json& report) {
  const std::string device = member(report, "device");
  for (const json& one : list_of(named(report, member(report, "selected")), "devices"))
    if (device == fmt::format("{}:{}", member(report, "selected"), any_member(one, "index")))
      return one;
  return json::object();
}

// {requested, verdict, device, class, name, code, reason, hint}; unknown members are left out.
ordered_json judged(const json& report, const std::string& problem, bool demanded) {
  const std::string requested = member(report, "requested");
  const json device = chosen_device(report);
  // Demanding "auto" means demanding something better than a processor.
  const bool only_cpu = demanded && requested == "auto" && any_member(device, "class") == "cpu";
  const bool fell_back = report.value("fallback", false) || only_cpu;
  ordered_json out = {{"requested", requested},
                      {"verdict", !problem.empty() ? "not usable"
                                  : fell_back      ? "fallback"
                                                   : "usable"}};
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) out[key] = value;
  };
  if (problem.empty()) {
    put("device", member(report, "device"));
    for (const char* key : {"class", "name"}) put(key, any_member(device, key));
  }
  if (only_cpu) put("reason", "only a processor can be used; `bitnet doctor` says why");
  const json asked = named(report, requested.substr(0, requested.find(':')));
  if (any_member(asked, "code") != "BN-OK")
    for (const char* key : {"code", "reason", "hint"}) put(key, any_member(asked, key));
  put("problem", problem);
  return out;
}

std::string verdict_text(const ordered_json& v) {
  std::string out = fmt::format("{}: ", any_member(v, "verdict"));
  if (v.contains("problem")) return out + any_member(v, "problem") + "\n";
  out += any_member(v, "device");
  if (v.contains("name")) out += fmt::format(", {}", any_member(v, "name"));
  if (v.value("verdict", "") == "fallback") {
    out += fmt::format(" in place of {}", v["requested"] == "auto" ? "a GPU or an accelerator"
                                                                   : any_member(v, "requested"));
    if (v.contains("reason")) out += ": " + any_member(v, "reason");
  }
  return out + "\n";
}

// Maps a failure to this command's three exit codes.
std::unexpected<failure> in_own_codes(failure f) {
  if (f.exit_code != exit_code::usage && f.exit_code != exit_code::interrupted)
    f.exit_code = not_usable;
  return std::unexpected(std::move(f));
}

}  // namespace

result<int> preflight_command(const invocation& in) {
  if (!in.positionals.empty())
    return fail(exit_code::usage, fmt::format("preflight takes no '{}'", in.positionals.front()));
  auto asked = settings_asked(in.set);
  if (!asked) return std::unexpected(asked.error());
  const invocation changed = in.with(*asked);
  auto runtime = open_runtime(changed, in.set.flag("fresh"));
  if (!runtime) return in_own_codes(std::move(runtime.error()));
  library_error err;
  const bitnet_status status = bitnet_runtime_select(runtime->get(), &err);
  if (status == BITNET_INVALID_ARGUMENT) return failed(status, err, stage::work);
  const std::string problem =
      status == BITNET_OK ? "" : failed(status, err, stage::work).error().message;
  auto report = runtime_report(runtime->get());
  if (!report) return in_own_codes(std::move(report.error()));
  const ordered_json verdict = judged(*report, problem, in.set.flag("require"));
  const std::string shown =
      in.set.flag("json")
          ? verdict.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n"
          : text::printable_lines(verdict_text(verdict));
  if (auto done = print(shown); !done) return std::unexpected(done.error());
  return verdict["verdict"] == "usable" ? exit_code::ok : not_usable;
}

}  // namespace bitnet::host
