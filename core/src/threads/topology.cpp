#include "threads/topology.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <string>

#include "threads/cpu_set.hpp"

namespace bitnet::threads {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = 64 << 10;  // of a file: a list of every second CPU has 40 KB
constexpr uint32_t most_caches = 16;          // per CPU; usually 4 or 5

std::optional<std::string> content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::string out(most_bytes, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(in.gcount()));
  return out;
}

std::string_view without_line_break(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// Removes the number at the front of the text and returns it.
std::optional<uint32_t> take_number(std::string_view& text) {
  uint32_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || out >= most_cpus) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return out;
}

std::optional<uint32_t> number_in(const fs::path& file) {
  const auto all = content(file);
  if (!all) return std::nullopt;
  std::string_view text = without_line_break(*all);
  const auto out = take_number(text);
  return text.empty() ? out : std::nullopt;
}

std::optional<cpu_list> list_in(const fs::path& file) {
  const auto all = content(file);
  return all ? read_cpu_list(*all) : std::nullopt;
}

// The first CPU in the file's list, if `cpu` is in it.
std::optional<uint32_t> first_of(const fs::path& file, uint32_t cpu) {
  const auto list = list_in(file);
  if (!list || !std::ranges::binary_search(*list, cpu)) return std::nullopt;
  return list->front();
}

// The first CPU that shares the last-level cache with this one.
std::optional<uint32_t> last_cache(const fs::path& of_cpu, uint32_t cpu) {
  uint32_t last_level = 0;
  std::optional<uint32_t> out;
  for (uint32_t i = 0; i < most_caches; ++i) {
    const fs::path cache = of_cpu / "cache" / ("index" + std::to_string(i));
    const auto level = number_in(cache / "level");
    if (!level) break;
    if (*level < last_level || content(cache / "type") == "Instruction\n") continue;
    const auto first = first_of(cache / "shared_cpu_list", cpu);
    if (!first) continue;
    last_level = *level;
    out = first;
  }
  return out;
}

std::map<uint32_t, uint32_t> nodes_of_cpus(const fs::path& system) {
  std::map<uint32_t, uint32_t> out;
  const auto nodes = list_in(system / "node/online");
  if (!nodes) return out;
  for (const uint32_t node : *nodes)
    if (const auto cpus = list_in(system / ("node/node" + std::to_string(node)) / "cpulist"))
      for (const uint32_t cpu : *cpus) out.try_emplace(cpu, node);
  return out;
}

}  // namespace

std::optional<cpu_list> read_cpu_list(std::string_view text) {
  cpu_list out;
  text = without_line_break(text);
  if (text.empty()) return out;
  while (true) {
    const auto first = take_number(text);
    if (!first) return std::nullopt;
    std::optional<uint32_t> last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number(text);
    }
    if (!last || *last < *first || (!out.empty() && *first <= out.back())) return std::nullopt;
    for (uint32_t cpu = *first; cpu <= *last; ++cpu) out.push_back(cpu);
    if (text.empty()) return out;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
}

uint32_t core_of(const fs::path& root, uint32_t cpu) {
  const fs::path here = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu));
  return first_of(here / "topology/thread_siblings_list", cpu).value_or(cpu);
}

std::vector<cpu_facts> read_topology(const fs::path& root, const cpu_list& cpus) {
  const fs::path system = root / "sys/devices/system";
  const std::map<uint32_t, uint32_t> nodes = nodes_of_cpus(system);
  // Hybrid processors list the small cores, or have a number for each CPU.
  const cpu_list small = list_in(root / "sys/devices/cpu_atom/cpus").value_or(cpu_list());
  constexpr uint32_t fast = cpu_facts().speed;
  std::vector<cpu_facts> out;
  out.reserve(cpus.size());
  for (const uint32_t cpu : cpus) {
    const fs::path here = system / "cpu" / ("cpu" + std::to_string(cpu));
    cpu_facts facts{.cpu = cpu};
    if (const auto found = nodes.find(cpu); found != nodes.end()) facts.node = found->second;
    facts.core = core_of(root, cpu);
    facts.cache = last_cache(here, cpu).value_or(most_cpus + facts.node);
    facts.speed = number_in(here / "cpu_capacity")
                      .value_or(std::ranges::binary_search(small, cpu) ? fast / 2 : fast);
    out.push_back(facts);
  }
  return out;
}

bool has_several_nodes(const fs::path& root) {
  const auto nodes = list_in(root / "sys/devices/system/node/online");
  return nodes && nodes->size() > 1;
}

}  // namespace bitnet::threads
