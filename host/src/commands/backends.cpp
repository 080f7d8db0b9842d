// bitnet backends: lists what can compute here, and explains the selection.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "library/conformance_report.hpp"
#include "library/placing.hpp"
#include "plan/kernel_aliases.hpp"
#include "process/interrupt.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

std::string words(const json& list) {
  std::string out;
  for (const json& word : list)
    if (word.is_string()) out += (out.empty() ? "" : ", ") + word.get<std::string>();
  return out;
}

// Reports after a selection, since only then the report can explain it. `choice` receives its
// status.
result<json> chosen_report(const invocation& in, bool fresh, bitnet_status* choice = nullptr) {
  auto runtime = open_runtime(in, fresh);
  if (!runtime) return std::unexpected(runtime.error());
  library_error err;
  const bitnet_status status = bitnet_runtime_select(runtime->get(), &err);
  // Reports a request that cannot be met; a malformed one is an error.
  if (status == BITNET_INVALID_ARGUMENT) return failed(status, err, stage::work);
  if (choice != nullptr) *choice = status;
  const std::string problem = err.message;
  if (const bitnet_status asked = bitnet_runtime_probe(runtime->get(), &err); asked != BITNET_OK) {
    return failed(asked, err, stage::work);
  }
  auto report = runtime_report(runtime->get());
  if (!report) return report;
  (*report)["line"] = selection_line(runtime->get());
  if (status != BITNET_OK) (*report)["problem"] = problem;
  return report;
}

bool works(const json& backend) {
  return any_member(backend, "code") == "BN-OK";
}

std::string list_text(const json& report) {
  const json backends = list_of(report, "backends");
  if (backends.empty()) {
    return "no backend is installed; install one, such as the package bitnet-backend-cpu\n";
  }
  std::string out;
  for (const json& one : backends) {
    const json devices = list_of(one, "devices");
    const std::string state =
        works(one) ? any_member(one, "stage")
                   : fmt::format("{}: {}", any_member(one, "code"), any_member(one, "reason"));
    if (devices.empty()) {
      out += fmt::format("{:<12} {:<36} {}\n", any_member(one, "name"), "-", state);
    }
    std::size_t index = 0;
    for (const json& device : devices) {
      const std::string id = fmt::format("{}:{}", any_member(one, "name"), index++);
      out += fmt::format("{:<12} {:<36} {}\n", id, any_member(device, "name"), state);
    }
  }
  return out;
}

// The age of a remembered probe result, and when it expires.
std::string memory_text(const json& backend) {
  const json probe = backend.value("probe", json::object());
  if (!probe.value("cached", false)) return "";
  std::string out = fmt::format("  remembered from {} s ago", probe.value("age_s", int64_t{0}));
  if (const auto retry = probe.value("retry_in_s", int64_t{0}); retry != 0)
    out += fmt::format("; asked again in {} s, or at once by `bitnet backends probe --all --fresh`",
                       retry);
  return out + "\n";
}

// "  cpu:0 ranks 1: class cpu, kernels fused, memory_gib 15, priority 50"
std::string standing_text(const json& backend, const json& device) {
  if (!device.contains("rank")) return "";
  std::string facts;
  const json score = device.value("score", json::object());
  for (const auto& [key, value] : score.items())
    facts += fmt::format("{}{} {}", facts.empty() ? "" : ", ", key,
                         value.is_string() ? value.get<std::string>() : json_text(value));
  std::string out = fmt::format("  {}:{} ranks {}: {}", any_member(backend, "name"),
                                any_member(device, "index"), any_member(device, "rank"), facts);
  if (!any_member(device, "same_as").empty())
    out += fmt::format("; the same device as {}", any_member(device, "same_as"));
  return out + "\n";
}

std::string why_text(const json& report) {
  std::string out = any_member(report, "line") + "\n";
  out += fmt::format("requested by {}\n", any_member(report, "requested_by"));
  if (report.contains("problem")) out += any_member(report, "problem") + "\n";
  for (const json& one : list_of(report, "backends")) {
    out += fmt::format("\n{:<12} {} {}\n", any_member(one, "name"), any_member(one, "stage"),
                       any_member(one, "code"));
    for (const char* key : {"reason", "hint"}) {
      if (!any_member(one, key).empty()) out += fmt::format("  {}\n", any_member(one, key));
    }
    for (const json& device : list_of(one, "devices")) out += standing_text(one, device);
    out += memory_text(one);
  }
  out += "\nsearched\n";
  for (const json& one : list_of(report, "searched")) {
    out += fmt::format("  {}: {}\n", any_member(one, "directory"), any_member(one, "result"));
  }
  return out;
}

// The device's state with the time of the report: "status (reported now)".
std::string status_text(const json& status) {
  const bool by_probe = any_member(status, "asked") == "probe";
  std::string out = fmt::format(
      "    status (reported {})\n",
      by_probe ? fmt::format("by the probe, {} s ago", any_member(status, "age_s")) : "now");
  for (const auto& [key, content] : status.items()) {
    if (key == "asked" || key == "age_s") continue;
    const std::string text = !content.is_array() ? any_member(status, key.c_str())
                             : content.empty()   ? "no"
                                                 : words(content);
    out += fmt::format("      {:<24} {}\n", key, text);
  }
  return out;
}

// "linear_dense.f16.cuda (optimised)"
std::string kernel_text(const json& kernel) {
  const std::string precision = any_member(kernel, "precision");
  const std::string others = words(list_of(kernel, "aliases"));
  return fmt::format("{} ({}{}{})", any_member(kernel, "id"), any_member(kernel, "level"),
                     precision.empty() ? "" : ", rounds to " + precision,
                     others.empty() ? "" : ", in BitNet-rs " + others);
}

std::string info_text(const json& backend) {
  std::string out = any_member(backend, "name") + "\n";
  for (const auto& [key, content] : backend.items()) {
    if (key == "name" || key == "devices" || key == "kernels") continue;
    const std::string text =
        key == "environment" ? words(content) : any_member(backend, key.c_str());
    if (!text.empty()) out += fmt::format("  {:<11} {}\n", key, text);
  }
  for (const json& device : list_of(backend, "devices")) {
    out += "  device\n";
    for (const auto& [key, content] : device.items()) {
      if (key == "kv_types") {
        out += fmt::format("    {:<18} {}\n", key, words(content));
        continue;
      }
      if (key == "status" && content.is_object()) {
        out += status_text(content);
        continue;
      }
      if (content.is_array()) continue;
      out += fmt::format("    {:<18} {}\n", key, any_member(device, key.c_str()));
    }
    for (const json& kernel : list_of(device, "kernels"))
      out += fmt::format("    kernel             {}\n", kernel_text(kernel));
  }
  for (const json& kernel : list_of(backend, "kernels"))
    out += fmt::format("  kernel      {}\n", kernel_text(kernel));
  return out;
}

// Adds the names that BitNet-rs has for the kernels.
void add_aliases(json& backend) {
  if (!backend.contains("kernels")) return;
  for (json& kernel : backend["kernels"])
    if (auto others = aliases_of(any_member(kernel, "id")); !others.empty())
      kernel["aliases"] = std::move(others);
}

// Prints JSON unchanged, since it is escaped already.
result<int> printed(const std::string& text) {
  if (auto done = print(text); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

result<int> printed_text(const std::string& text) {
  return printed(text::printable_lines(text));
}

// Prints a report on a selection; the exit code is that of a command that needs the selection.
result<int> printed_choice(const std::string& text, bitnet_status choice) {
  if (auto done = print(text); !done) return std::unexpected(done.error());
  return exit_code_of(choice, stage::work);
}

result<int> info(const invocation& in, const json& report) {
  const std::string wanted = in.positionals.size() > 1 ? in.positionals[1] : "";
  json shown = json::array();
  for (const json& one : list_of(report, "backends")) {
    if (wanted.empty() || any_member(one, "name") == wanted) shown.push_back(one);
  }
  if (shown.empty() && !wanted.empty()) {
    std::string passed_over;  // folders that root's configuration does not include
    for (const json& one : list_of(report, "searched"))
      if (any_member(one, "result").starts_with("not searched"))
        passed_over +=
            fmt::format("; {}: {}", any_member(one, "directory"), any_member(one, "result"));
    return fail(exit_code::unavailable,
                fmt::format("no backend '{}' was found; `bitnet backends dir` lists where it was "
                            "looked for{}",
                            wanted, passed_over));
  }
  for (json& one : shown) {
    add_aliases(one);
    const std::string claim = in_words(read_conformance(
        any_member(one, "manifest"), any_member(one, "name"), any_member(one, "build_id")));
    if (!claim.empty()) one["conformance"] = claim;
    if (!one.value("host_threads", false)) continue;
    if (in.set.flag("json"))
      one["threads"] = report.value("threads", json::object());
    else
      one["threads"] = threads_text(report);
  }
  if (in.set.flag("json")) return printed(json_line({{"backends", shown}}));
  std::string out;
  for (const json& one : shown) out += (out.empty() ? "" : "\n") + info_text(one);
  return printed_text(shown.empty() ? list_text(report) : out);
}

result<int> dir(const invocation& in, const json& report) {
  const json searched = list_of(report, "searched");
  if (in.set.flag("json")) return printed(json_line({{"searched", searched}}));
  std::string out;
  for (const json& one : searched) out += any_member(one, "directory") + "\n";
  return printed_text(out);
}

result<std::string> file_of(const invocation& in) {
  if (in.positionals.size() == 2) return in.positionals[1];
  return fail(exit_code::usage, fmt::format("backends {} takes one FILE, the library of a backend",
                                            in.positionals.front()));
}

result<int> sign(const invocation& in) {
  const auto file = file_of(in);
  if (!file) return std::unexpected(file.error());
  const std::string& key = in.set.text("key");
  if (key.empty()) {
    return fail(exit_code::usage,
                "backends sign needs --key FILE, a private key as `openssl genpkey -algorithm "
                "ed25519` writes it");
  }
  library_error err;
  const bitnet_status status = bitnet_backend_sign(file->c_str(), key.c_str(), &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return printed(in.set.flag("json") ? json_line({{"file", *file}, {"signature", *file + ".sig"}})
                                     : *file + ".sig\n");
}

result<int> verify(const invocation& in) {
  const auto file = file_of(in);
  if (!file) return std::unexpected(file.error());
  library_error err;
  std::string report;
  const bitnet_status status = bitnet_backend_verify(
      file->c_str(), in.set.text("trusted-keys").c_str(), keep_text, &report, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  const auto content = parse_json(report);
  if (!content) return std::unexpected(content.error());
  if (in.set.flag("json")) return printed(json_line(*content));
  return printed_text(fmt::format("{}: signed by {} ({})\n", *file,
                                  any_member(*content, "key_file"), any_member(*content, "key")));
}

// 1.2 s, 7 ms
std::string duration(int64_t ms) {
  return ms < 1000 ? fmt::format("{} ms", ms)
                   : fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
}

std::string probe_text(const json& report) {
  std::string out;
  for (const json& one : list_of(report, "backends")) {
    const json probe = one.value("probe", json::object());
    if (probe.empty()) continue;
    const bool cached = probe.value("cached", false);
    const std::string when = cached ? fmt::format("{} s ago", probe.value("age_s", int64_t{0}))
                                    : duration(probe.value("time_ms", int64_t{0}));
    out += fmt::format("{:<12} {:<17} {:<13} {:>9}  {}\n", any_member(one, "name"),
                       any_member(one, "code"), any_member(probe, "stage"), when,
                       any_member(one, "reason"));
  }
  return out.empty() ? "nothing was probed; `bitnet backends why` says why\n" : out;
}

// Waits for all probes to end; a selection does not.
result<int> probe(const invocation& in) {
  auto runtime = open_runtime(in, in.set.flag("fresh"));
  if (!runtime) return std::unexpected(runtime.error());
  library_error err;
  const bitnet_status asked = in.set.flag("all") ? bitnet_runtime_probe(runtime->get(), &err)
                                                 : bitnet_runtime_select(runtime->get(), &err);
  if (asked == BITNET_INVALID_ARGUMENT) return failed(asked, err, stage::work);
  constexpr uint32_t look_ms = 100;
  while (bitnet_runtime_wait_probes(runtime->get(), look_ms, &err) == BITNET_TIMEOUT)
    if (interrupt::requested()) return exit_code::interrupted;
  auto report = runtime_report(runtime->get());
  if (!report) return std::unexpected(report.error());
  return printed_choice(
      in.set.flag("json") ? json_line(*report) : text::printable_lines(probe_text(*report)), asked);
}

}  // namespace

result<int> backends_command(const invocation& in) {
  const std::string what = in.positionals.empty() ? "list" : in.positionals.front();
  if (what == "sign") return sign(in);
  if (what == "verify") return verify(in);
  const std::size_t takes = what == "info" ? 2 : 1;
  if (what != "list" && what != "info" && what != "why" && what != "probe" && what != "dir") {
    return fail(
        exit_code::usage,
        fmt::format("backends takes list, info, why, probe, dir, sign or verify, found '{}'",
                    what));
  }
  if (in.positionals.size() > takes) {
    return fail(exit_code::usage,
                fmt::format("backends {} takes no '{}'", what, in.positionals.back()));
  }
  if (what == "probe") return probe(in);
  bitnet_status choice = BITNET_OK;
  auto report = chosen_report(in, in.set.flag("fresh"), &choice);
  if (!report) return std::unexpected(report.error());
  if (what == "info") return info(in, *report);
  if (what == "dir") return dir(in, *report);
  const bool json_wanted = in.set.flag("json");
  if (what == "list")
    return json_wanted ? printed(json_line(*report)) : printed_text(list_text(*report));
  return printed_choice(json_wanted ? json_line(*report) : text::printable_lines(why_text(*report)),
                        choice);
}

result<int> list_devices(const invocation& in) {
  auto report = chosen_report(in, false);
  if (!report) return std::unexpected(report.error());
  return printed_text(list_text(*report));
}

}  // namespace bitnet::host
