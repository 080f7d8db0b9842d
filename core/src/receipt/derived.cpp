#include "receipt/derived.hpp"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "json/reading.hpp"
#include "plugin/trust/ed25519.hpp"
#include "receipt/digest.hpp"
#include "text/ascii.hpp"

namespace bitnet::receipt {
namespace {

bool is_mock(const std::string& id) {
  return lower_ascii(id).find("mock") != std::string::npos;
}

// Saturates, since counters in a receipt may be invented.
void count_up(uint64_t& to, uint64_t more) {
  to = more > std::numeric_limits<uint64_t>::max() - to ? std::numeric_limits<uint64_t>::max()
                                                        : to + more;
}

}  // namespace

uint64_t count_in(const json::value& object, const char* name) {
  if (!object.is_object()) return 0;
  const json::value& found = json::member(object, name);
  return found.is_number_unsigned() ? found.get<uint64_t>() : 0;
}

std::string text_in(const json::value& object, const char* name) {
  if (!object.is_object()) return "";
  const json::value& found = json::member(object, name);
  return found.is_string() ? found.get<std::string>() : "";
}

coverage coverage_of(const json::value& kernel_stats, const std::string& selected) {
  coverage out;
  for (const json::value& row : kernel_stats) {
    const uint64_t calls = count_in(row, "calls");
    count_up(out.ops_total, calls);
    count_up(text_in(row, "device") == selected ? out.ops_on_selected : out.ops_elsewhere, calls);
    const std::string level = text_in(row, "level");
    count_up(level == "fused"       ? out.fused
             : level == "optimised" ? out.optimised
             : level == "reference" ? out.reference
                                    : out.unlisted,
             calls);
  }
  return out;
}

json::value to_json(const coverage& c) {
  return {{"ops_total", c.ops_total},
          {"ops_on_selected", c.ops_on_selected},
          {"ops_elsewhere", c.ops_elsewhere},
          {"fused", c.fused},
          {"optimised", c.optimised},
          {"reference", c.reference},
          {"unlisted", c.unlisted}};
}

std::string compute_path(const json::value& kernel_stats, const json::value& devices) {
  bool any = false;
  for (const json::value& row : kernel_stats) {
    if (count_in(row, "calls") == 0) continue;
    any = true;
    if (is_mock(text_in(row, "id"))) return "mock";
    const uint64_t place = count_in(row, "place");
    if (place >= devices.size() || !devices[place].is_object()) continue;
    const json::value& fake = json::member(devices[place], "fake");
    if (fake.is_boolean() && fake.get<bool>()) return "mock";
  }
  return any ? "real" : "none";
}

json::value kernel_ids(const json::value& kernel_stats) {
  json::value out = json::value::array();
  std::set<std::string> seen;
  for (const json::value& row : kernel_stats)
    if (std::string id = text_in(row, "id"); seen.insert(id).second) out.push_back(std::move(id));
  return out;
}

std::string token_sum(const std::string& salt, const char* what, std::span<const int32_t> ids) {
  sha256 sum;
  sum.add(plugin::bytes_of_hexadecimal(salt));
  sum.add(what);
  sum.add("\n");
  for (const int32_t id : ids) {
    const auto bits = static_cast<uint32_t>(id);
    const char bytes[] = {static_cast<char>(bits & 0xFFU), static_cast<char>(bits >> 8U & 0xFFU),
                          static_cast<char>(bits >> 16U & 0xFFU), static_cast<char>(bits >> 24U)};
    sum.add(std::string_view(bytes, sizeof bytes));
  }
  return sum.hex();
}

std::string model_sum(const json::value& files) {
  std::map<std::string, std::string> by_name;
  for (const json::value& file : files) by_name[text_in(file, "name")] = text_in(file, "sha256");
  sha256 sum;
  for (const auto& [name, of_file] : by_name) sum.add(plugin::bytes_of_hexadecimal(of_file));
  return sum.hex();
}

json::value subject_of(const json::value& model) {
  const json::value& files = json::member(model, "files");
  json::value out = json::value::array();
  out.push_back(
      {{"name", text_in(model, "name")}, {"digest", {{"sha256", text_in(model, "digest")}}}});
  for (const json::value& file : files)
    out.push_back(
        {{"name", text_in(file, "name")}, {"digest", {{"sha256", text_in(file, "sha256")}}}});
  return out;
}

double tokens_per_second(uint64_t tokens, double generate_ms) {
  return tokens == 0 || generate_ms <= 0 ? 0 : static_cast<double>(tokens) * 1000 / generate_ms;
}

}  // namespace bitnet::receipt
