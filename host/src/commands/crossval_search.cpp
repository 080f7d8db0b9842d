#include "commands/crossval_search.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "basic/json.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

// The facts that bitnet analyze-library reports about the library.
std::expected<crossval::library_facts, std::string> facts_of_library(const std::string& path) {
  constexpr uint64_t no_names = 0;
  library_error err;
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_analyze_library(path.c_str(), no_names, out, capacity, needed, &err);
      },
      text);
  if (status != BITNET_OK) return std::unexpected(std::string(err.message));
  const auto report = parse_json(text);
  if (!report) return std::unexpected(report.error().message);
  const json groups = report->value("groups", json::object());
  const auto defined = [&](const char* group) {
    return groups.value(group, json::object()).value("defined", uint64_t{0});
  };
  const auto count = [&](const char* group) {
    return groups.value(group, json::object()).value("count", uint64_t{0});
  };
  const json formats = list_of(*report, "formats");
  const json accelerators = list_of(*report, "accelerators");
  const bool needs_cuda = std::ranges::any_of(accelerators, [](const json& one) {
    return one.is_string() && one.get<std::string>().starts_with("libcu");
  });
  return crossval::library_facts{.llama = defined("llama") > 0,
                                 .i2_s = std::ranges::find(formats, "i2_s") != formats.end(),
                                 .cuda = count("cuda") > 0 || needs_cuda};
}

crossval::asked_place place_of(const settings& set, const char* option) {
  return {set.text(option), set.origin(option)};
}

}  // namespace

find_report search_build(const invocation& in) {
  std::vector<std::string> notes;
  const crossval::places where = crossval::places_of(
      place_of(in.set, "crossval-libdir"), place_of(in.set, "cpp-dir"), in.variables, notes);
  for (const std::string& note : notes) in.out.warning(note);
  return {crossval::discover(where, facts_of_library), where.origin, "", ""};
}

}  // namespace bitnet::host
