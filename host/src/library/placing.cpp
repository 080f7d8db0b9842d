#include "library/placing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

json threads_of(const json& report) {
  const auto found = report.find("threads");
  return found != report.end() && found->is_object() ? *found : json::object();
}

// Bytes from "NAME: 123 kB".
std::optional<uint64_t> bytes_at(std::string_view text, std::string_view name) {
  const std::size_t line = text.find(name);
  if (line == text.npos || (line != 0 && text[line - 1] != '\n')) return std::nullopt;
  text.remove_prefix(line + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t kilobytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kilobytes);
  if (error != std::errc() || kilobytes > UINT64_MAX >> 10) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(" kB\n")) return std::nullopt;
  return kilobytes << 10;
}

}  // namespace

bool has_places(const json& report) {
  return !list_of(threads_of(report), "places").empty();
}

std::string threads_text(const json& report) {
  const json threads = threads_of(report);
  if (threads.empty()) return "";
  const std::string count = any_member(threads, "count");
  const json places = list_of(threads, "places");
  if (places.empty()) return fmt::format("{} on CPUs {}", count, any_member(threads, "cpus"));
  if (any_member(threads, "strict") == "true") {
    std::string cpus;
    for (const json& one : places)
      cpus += fmt::format("{}{}", cpus.empty() ? "" : ", ", any_member(one, "cpus"));
    return fmt::format("{}, kept to CPUs {} in this order", count, cpus);
  }
  std::map<std::string, uint32_t> of_cpus;
  for (const json& one : places) ++of_cpus[any_member(one, "cpus")];
  std::string groups;
  for (const auto& [cpus, n] : of_cpus)
    groups += fmt::format("{}{} to CPUs {}", groups.empty() ? "" : ", ", n, cpus);
  return fmt::format("{}, kept to NUMA nodes: {}", count, groups);
}

std::optional<large_pages> read_large_pages(std::string_view smaps_rollup) {
  const auto own = bytes_at(smaps_rollup, "AnonHugePages:");
  if (!own) return std::nullopt;
  return large_pages{*own, bytes_at(smaps_rollup, "FilePmdMapped:").value_or(0)};
}

std::optional<large_pages> large_pages_now() {
  std::ifstream file("/proc/self/smaps_rollup");
  if (!file) return std::nullopt;
  return read_large_pages(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::string text_of(const large_pages& pages) {
  constexpr uint64_t megabyte = 1'000'000;
  return fmt::format("{} MB of memory, {} MB of files", pages.own / megabyte,
                     pages.files / megabyte);
}

}  // namespace bitnet::host
