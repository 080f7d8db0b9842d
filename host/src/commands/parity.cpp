// bitnet parity: compares every op and format of every backend with the reference.
// bitnet-backend-conformance --parity measures, in a child process per device. So this program
// needs no reference of its own, and a backend that crashes ends only its child.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "process/interrupt.hpp"
#include "process/run_program.hpp"
#include "settings/environment.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t longest_answer = 16UL * 1024 * 1024;  // bytes

result<json> probed_backends(const invocation& in) {
  auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  library_error err;
  if (const bitnet_status asked = bitnet_runtime_probe(runtime->get(), &err); asked != BITNET_OK)
    return failed(asked, err, stage::work);
  constexpr uint32_t look_ms = 100;
  while (bitnet_runtime_wait_probes(runtime->get(), look_ms, &err) == BITNET_TIMEOUT)
    if (interrupt::requested()) return fail(exit_code::interrupted, "");
  auto report = runtime_report(runtime->get());
  if (!report) return report;
  return list_of(*report, "backends");
}

// Compares one device: returns {backend, device, rows} or {backend, device, problem}.
ordered_json compare(const environment& variables, const std::string& program,
                     const std::string& name, const std::string& library, std::size_t device) {
  ordered_json out = {{"backend", name}, {"device", device}};
  std::vector<std::string> words = {"--parity", "--device", std::to_string(device)};
  // Of the settings that the device was listed with, those of the environment.
  for (const auto& [key, value] : variables.backend_settings(name)) {
    words.emplace_back("--set");
    words.push_back(fmt::format("{}={}", key, value));
  }
  words.push_back(library);
  const auto answer = run_program(program, std::move(words), longest_answer);
  if (!answer) {
    out["problem"] = answer.error().message;
    return out;
  }
  if (answer->exit_status == run_program_failed) {
    out["problem"] = fmt::format("{} cannot be started: reinstall the SDK", program);
    return out;
  }
  const json found = json::parse(answer->text, nullptr, false);
  if (!found.is_object() || (member(found, "problem").empty() && list_of(found, "rows").empty())) {
    out["problem"] =
        fmt::format("{} gave no numbers, exit status {}", program, answer->exit_status);
    return out;
  }
  out["suite_version"] = member(found, "suite_version");
  out["device_name"] = member(found, "device");
  out["rows"] = list_of(found, "rows");
  if (!member(found, "problem").empty()) out["problem"] = member(found, "problem");
  return out;
}

bool agrees(const json& row) {
  return !row.contains("ok") || (row["ok"].is_boolean() && row["ok"].get<bool>());
}

bool all_agree(const ordered_json& compared) {
  for (const ordered_json& one : compared) {
    if (one.contains("problem")) return false;
    for (const json row : one.value("rows", ordered_json::array()))
      if (!agrees(row)) return false;
  }
  return true;
}

double number(const json& row, const char* key) {
  return row.contains(key) && row[key].is_number() ? row[key].get<double>() : 0;
}

std::string row_text(const std::string& device, const json& row) {
  const std::string format = member(row, "format");
  const std::string op = member(row, "op") + (format.empty() ? "" : "." + format);
  if (!row.contains("ok"))
    return fmt::format("{:<12} {:<24} {:<10} -\n", device, op, member(row, "level"));
  const bool exact = row.contains("exact") && row["exact"] == true;
  std::string out =
      fmt::format("{:<12} {:<24} {:<10} {:<5} {:>9.2e} {:>9.2e} {:>8.0f}  {}\n", device, op,
                  member(row, "level"), exact ? "exact" : "close", number(row, "max_abs"),
                  number(row, "nmse"), number(row, "max_ulp"), member(row, "kernel"));
  if (!agrees(row)) out += fmt::format("{:<12} WRONG: {}\n", device, member(row, "wrong"));
  return out;
}

std::string as_text(const ordered_json& compared, const ordered_json& left_out) {
  std::string out = fmt::format("{:<12} {:<24} {:<10} {:<5} {:>9} {:>9} {:>8}  {}\n", "device",
                                "op", "level", "bits", "max abs", "nmse", "max ulp", "kernel");
  for (const json one : compared) {
    const std::string device =
        fmt::format("{}:{}", member(one, "backend"), json_text(one["device"]));
    for (const json& row : list_of(one, "rows")) out += row_text(device, row);
    if (one.contains("problem")) out += fmt::format("{:<12} {}\n", device, member(one, "problem"));
  }
  for (const json one : left_out)
    out += fmt::format("{:<12} left out: {}\n", member(one, "backend"), member(one, "reason"));
  return out;
}

}  // namespace

result<int> parity_command(const invocation& in) {
  if (!in.positionals.empty())
    return fail(exit_code::usage,
                fmt::format("parity takes no '{}'; --backend NAME names one backend",
                            in.positionals.front()));
  const std::string program = sibling_program("bitnet-backend-conformance");
  if (program.empty())
    return fail(
        exit_code::failure,
        "bitnet-backend-conformance, which compares, is not beside this program; it comes with "
        "the SDK: install its package, or build the target of that name, which needs "
        "GoogleTest, and install the component conformance");
  auto backends = probed_backends(in);
  if (!backends) return std::unexpected(backends.error());
  const std::string& wanted = in.set.text("backend");
  ordered_json compared = ordered_json::array(), left_out = ordered_json::array();
  for (const json& one : *backends) {
    const std::string name = member(one, "name");
    if (!wanted.empty() && name != wanted) continue;
    if (member(one, "code") != "BN-OK" || one.contains("fake")) {
      left_out.push_back({{"backend", name}, {"reason", member(one, "reason")}});
      continue;
    }
    for (std::size_t d = 0; d < list_of(one, "devices").size(); ++d)
      compared.push_back(compare(in.variables, program, name, member(one, "library"), d));
    if (interrupt::requested()) return exit_code::interrupted;
  }
  if (compared.empty() && (!wanted.empty() || left_out.empty())) {
    const std::string why =
        left_out.empty() ? "it was not found" : member(left_out.front(), "reason");
    return fail(exit_code::unavailable,
                wanted.empty() ? "no backend is installed"
                               : fmt::format("backend '{}' cannot be compared: {}", wanted, why));
  }
  const std::string text = in.set.flag("json")
                               ? json_line({{"compared", compared}, {"left_out", left_out}})
                               : text::printable_lines(as_text(compared, left_out));
  if (auto done = print(text); !done) return std::unexpected(done.error());
  if (compared.empty()) return exit_code::unavailable;  // all skipped, with reasons above
  return all_agree(compared) ? exit_code::ok : exit_code::failure;
}

}  // namespace bitnet::host
