#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "doctor/report.hpp"

namespace bitnet::host::doctor {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Joins the known parts of a line with commas.
class line_parts {
 public:
  void add(const std::string& part) {
    if (!part.empty()) text_ += (text_.empty() ? "" : ", ") + part;
  }
  // Adds `form` with the value in place of "{}"; adds nothing if the value is unknown.
  void add(const ordered_json& from, const char* key, std::string_view form) {
    const std::string value = any_member(from, key);
    if (!value.empty()) add(fmt::format(fmt::runtime(form), value));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string bytes_text(const ordered_json& from, const char* key) {
  const auto found = from.find(key);
  if (found == from.end() || !found->is_number_unsigned()) return "";
  const auto bytes = found->get<uint64_t>();
  constexpr uint64_t mib = uint64_t{1} << 20U, gib = uint64_t{1} << 30U;
  if (bytes >= gib)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(gib));
  return bytes >= mib ? fmt::format("{} MiB", bytes / mib) : fmt::format("{} KiB", bytes / 1024);
}

std::string with_bytes(const ordered_json& from, const char* key, std::string_view form) {
  const std::string bytes = bytes_text(from, key);
  return bytes.empty() ? "" : fmt::format(fmt::runtime(form), bytes);
}

std::string words_in(const ordered_json& list) {
  std::string out;
  for (const ordered_json& one : list)
    if (one.is_string()) out += (out.empty() ? "" : " ") + one.get<std::string>();
  return out;
}

std::string row(std::string_view name, const std::string& text) {
  return text.empty() ? "" : fmt::format("  {:<12} {}\n", name, text);
}

std::string system_row(const ordered_json& machine) {
  line_parts out;
  out.add(machine, "system", "{}");
  out.add(machine, "kernel", "Linux {}");
  out.add(machine, "architecture", "{}");
  out.add(machine, "container", "in a container ({})");
  return row("system", out.text());
}

std::string processor_row(const ordered_json& machine) {
  line_parts out;
  out.add(machine, "board", "{}");
  out.add(machine, "processor", "{}");
  out.add(machine, "cpus_online", "{} CPUs online");
  if (machine.value("memory_nodes", uint64_t{1}) > 1)
    out.add(machine, "memory_nodes", "{} memory nodes");
  return row("processor", out.text());
}

std::string forms_row(const ordered_json& machine) {
  line_parts out;
  const bool listed = machine.contains("forms");
  if (listed) out.add(words_in(machine["forms"]));
  out.add(machine, "runs", listed ? "of which {} runs" : "{} runs");
  return row("kernels", out.text());
}

std::string pages_row(const ordered_json& pages) {
  line_parts out;
  out.add(pages, "transparent", "{}");
  out.add(with_bytes(pages, "large_page_bytes", "of {}"));
  if (pages.value("reserved_pages", uint64_t{0}) > 0) {
    out.add(pages, "reserved_pages", "{} reserved");
    out.add(pages, "free_pages", "{} of those free");
  }
  return row("large pages", out.text());
}

std::string governor_row(const ordered_json& governor) {
  line_parts out;
  if (governor.contains("governors")) out.add(words_in(governor["governors"]));
  out.add(governor, "driver", "driver {}");
  out.add(governor, "preference", "preference {}");
  return row("governor", out.text());
}

std::string limits_row(const ordered_json& limits) {
  line_parts out;
  out.add(limits, "cpus_allowed", "CPUs {}");
  if (limits.contains("cpu_quota"))
    out.add(fmt::format("a quota of {:.2f} CPUs", limits["cpu_quota"].get<double>()));
  out.add(with_bytes(limits, "cgroup_memory_bytes", "{} of memory"));
  out.add(limits, "cgroup_tasks", "{} threads in its control group");
  out.add(limits, "processes", "{} processes and threads");
  out.add(limits, "open_files", "{} open files");
  out.add(with_bytes(limits, "locked_bytes", "{} of locked memory"));
  out.add(with_bytes(limits, "address_bytes", "{} of addresses"));
  return row("limits", out.text());
}

std::string memory_row(const ordered_json& memory) {
  line_parts out;
  out.add(with_bytes(memory, "free_bytes", "{} free"));
  out.add(with_bytes(memory, "total_bytes", "{} in all"));
  if (memory.value("swap_total_bytes", uint64_t{0}) > 0)
    out.add(with_bytes(memory, "swap_free_bytes", "{} of swap free"));
  return row("memory", out.text());
}

std::string device_text(const ordered_json& device) {
  line_parts about;
  about.add(device, "name", "{}");
  const std::string id = any_member(device, "device");
  about.add(any_member(device, "vendor") + (id.empty() ? "" : ":" + id));
  const std::string version = any_member(device, "driver_version");
  about.add(device, "driver", version.empty() ? "kernel driver {}" : "kernel driver {} " + version);
  const std::string driven_by = any_member(device, "driven_by");
  about.add(driven_by.empty() ? any_member(device, "state") : "driven by " + driven_by);
  std::string out = row(any_member(device, "address"), about.text());
  for (const char* key : {"problem", "advice"})
    if (const std::string text = any_member(device, key); !text.empty())
      out += fmt::format("               {}\n", text);
  return out;
}

std::string node_text(const ordered_json& node) {
  line_parts out;
  out.add(node, "group", "group {}");
  out.add(node.value("usable", false) ? "open to this user" : "closed to this user");
  return fmt::format("  {:<20} {}\n", any_member(node, "path"), out.text());
}

std::string self_test_text(const ordered_json& backend) {
  if (!backend.contains("self_test")) return "";
  const ordered_json& test = backend["self_test"];
  const auto others = test.value("others", ordered_json::array());
  std::string out = fmt::format("self-test: {} right", any_member(test, "right"));
  for (const ordered_json& one : others)
    if (one.is_string()) out += "; " + one.get<std::string>();
  return out;
}

std::string backend_text(const ordered_json& backend) {
  const std::string code = any_member(backend, "code");
  const std::string name = any_member(backend, "name");
  std::string out =
      row(name, code == "BN-OK" ? any_member(backend, "stage")
                                : fmt::format("{}: {}", code, any_member(backend, "reason")));
  for (const ordered_json& device : backend.value("devices", ordered_json::array())) {
    line_parts about;
    about.add(device, "name", "{}");
    about.add(device, "arch", "{}");
    about.add(device, "driver_version", "driver {}");
    about.add(with_bytes(device, "memory_total_bytes", "{}"));
    out += row(fmt::format("  {}:{}", name, any_member(device, "index")), about.text());
  }
  if (const std::string tests = self_test_text(backend); !tests.empty()) out += row("", tests);
  return out;
}

std::string cache_text(const ordered_json& cache) {
  line_parts out;
  out.add(cache, "folder", "{}");
  out.add(cache, "files", "{} files");
  out.add(bytes_text(cache, "bytes"));
  if (!cache.value("writable", true)) out.add("cannot be written to");
  return row(any_member(cache, "name"), out.text());
}

// Describes a build of llama.cpp or bitnet.cpp.
std::string engine_text(const ordered_json& engine) {
  line_parts out;
  out.add(engine, "library", "{}");
  if (engine.value("cuda", false)) out.add("with CUDA");
  out.add("`bitnet crossval` compares with it");
  return row(any_member(engine, "name"), out.text());
}

// Returns "" if the list is empty.
template <class Text>
std::string section(std::string_view title, const ordered_json& list, Text text_of) {
  std::string out = list.empty() ? "" : fmt::format("\n{}\n", title);
  for (const ordered_json& one : list) out += text_of(one);
  return out;
}

std::string finding_text(const ordered_json& one) {
  return fmt::format("  {}: {}\n      {}\n", any_member(one, "about"), any_member(one, "problem"),
                     any_member(one, "advice"));
}

std::string last_line(const ordered_json& report) {
  const std::string first = any_member(report, "first");
  if (!first.empty()) return fmt::format("\nfirst: {}\n", first);
  const std::string device = any_member(report, "selected");
  return fmt::format("\nfirst: nothing is to be done{}\n",
                     device.empty() ? "" : fmt::format("; {} computes", device));
}

}  // namespace

std::string report_text(const ordered_json& report) {
  std::string out = "machine\n";
  out += processor_row(report["machine"]) + forms_row(report["machine"]);
  out += system_row(report["machine"]) + memory_row(report["memory"]);
  out += pages_row(report["pages"]) + governor_row(report["governor"]);
  out += limits_row(report["limits"]);
  out += section("devices", report["devices"], device_text);
  out += section("nodes", report["nodes"], node_text);
  out += section("backends", report["backends"], backend_text);
  out += section("caches", report["caches"], cache_text);
  out +=
      section("other engines", report.value("other_engines", ordered_json::array()), engine_text);
  out += section("findings", report["findings"], finding_text);
  return out + last_line(report);
}

}  // namespace bitnet::host::doctor
