#include "library/weight_checks.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "library/handles.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

std::string facts_of(const json& row) {
  std::string out;
  for (const auto& [key, title] :
       {std::pair("rms", "rms"), {"scale", "scale"}, {"zero_fraction", "zeros"}}) {
    if (!row.contains(key)) continue;
    const json& value = row[key];
    out += fmt::format(
        "{}{} {}", out.empty() ? "" : ", ", title,
        value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : any_member(row, key));
  }
  return out;
}

}  // namespace

result<json> checked_weights(const std::string& file, const bitnet_model_options& options,
                             const std::string& rules) {
  library_error err;
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_inspect_weights(file.c_str(), &options, rules.c_str(), out, capacity, needed,
                                      &err);
      },
      text);
  if (status != BITNET_OK) return failed(status, err, stage::model);
  auto report = parse_json(text);
  if (report) report->erase("file");
  return report;
}

bool has_suspicious(const json& weights) {
  return weights.value("suspicious", uint64_t{0}) != 0;
}

std::string weights_text(const json& weights, bool all) {
  std::string out = fmt::format("\nweights, by the rules {}: {} checked, {} suspicious\n",
                                member(weights, "rules"), any_member(weights, "checked"),
                                any_member(weights, "suspicious"));
  for (const json& row : list_of(weights, "tensors")) {
    const bool fine = member(row, "status") == "ok";
    if (fine && !all) continue;
    out += fmt::format("  {:<10} {:<30} {:<5} {}\n", member(row, "status"),
                       text::printable(member(row, "name")), member(row, "type"), facts_of(row));
    for (const json& why : list_of(row, "why"))
      out += fmt::format("  {:<10} {}\n", "", why.is_string() ? why.get<std::string>() : "");
  }
  return out;
}

}  // namespace bitnet::host
