#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "doctor/machine.hpp"
#include "text/printable.hpp"

namespace bitnet::host::doctor {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t longest_name = 128;  // bytes, of a file's text

void put_text(ordered_json& out, const char* key, std::string_view value) {
  if (!value.empty()) out[key] = text::printable(value, longest_name);
}

// A form of the cpu backend's kernels, and the features that it needs by /proc/cpuinfo's names.
struct kernel_form {
  std::string_view name, features;
};
// Best first, in the cpu backend's order.
constexpr auto kernel_forms = std::to_array<kernel_form>({
    {"amx", "avx512f avx512bw avx512vl f16c avx512_vnni amx_tile amx_int8"},
    {"avx512vnni", "avx512f avx512bw avx512vl f16c avx512_vnni"},
    {"avx512", "avx512f avx512bw avx512vl f16c"},
    {"avxvnni", "avx2 f16c avx_vnni"},
    {"avx2", "avx2 f16c"},
    {"sse41", "sse4_1"},
    {"neon-i8mm", "asimddp i8mm"},
    {"neon-dotprod", "asimddp"},
    {"neon", "asimd"},
    {"scalar", ""},
});

ordered_json forms_with(std::string_view features) {
  const auto listed = words_of(features);
  const std::set<std::string_view> has(listed.begin(), listed.end());
  ordered_json out = ordered_json::array();
  for (const kernel_form& one : kernel_forms)
    if (std::ranges::all_of(words_of(one.features),
                            [&](std::string_view feature) { return has.contains(feature); }))
      out.push_back(one.name);
  return out;
}

std::string architecture_of(const system_tree& system, std::string_view x86_flags,
                            std::string_view arm_features) {
  if (std::string line = system.line("proc/sys/kernel/arch"); !line.empty()) return line;
  const auto has = [](std::string_view features, std::string_view one) {
    return std::ranges::count(words_of(features), one) != 0;
  };
  return has(x86_flags, "lm") ? "x86_64" : has(arm_features, "asimd") ? "aarch64" : "";
}

std::string container_of(const system_tree& system) {
  if (std::string line = system.line("run/systemd/container"); !line.empty()) return line;
  if (system.exists("run/.containerenv")) return "podman";
  return system.exists(".dockerenv") ? "docker" : "";
}

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string system_name(const system_tree& system) {
  constexpr std::string_view key = "PRETTY_NAME=";
  const std::string all = system.text("etc/os-release").value_or("");
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    std::string_view line = std::string_view(all).substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.size() > 1 && line.front() == '"' && line.back() == '"')
      line = line.substr(1, line.size() - 2);
    return std::string(line);
  }
  return "";
}

}  // namespace

ordered_json processor_facts(const system_tree& system) {
  const std::string about = system.text("proc/cpuinfo").value_or("");
  const std::string_view flags = field_of(about, "flags").value_or("");
  const std::string_view features = field_of(about, "Features").value_or("");
  ordered_json out = ordered_json::object();
  put_text(out, "architecture", architecture_of(system, flags, features));
  put_text(out, "system", system_name(system));
  put_text(out, "kernel", system.line("proc/sys/kernel/osrelease"));
  put_text(out, "container", container_of(system));
  put_text(out, "processor", field_of(about, "model name").value_or(""));
  // Device trees end their texts with a NUL.
  std::string board = system.text("sys/firmware/devicetree/base/model").value_or("");
  std::erase(board, '\0');
  put_text(out, "board", board);
  if (const auto cpus = count_in(system.line("sys/devices/system/cpu/online")))
    out["cpus_online"] = *cpus;
  if (const auto nodes = count_in(system.line("sys/devices/system/node/online")))
    out["memory_nodes"] = *nodes;
  if (!flags.empty() || !features.empty())
    out["forms"] = forms_with(flags.empty() ? features : flags);
  return out;
}

}  // namespace bitnet::host::doctor
