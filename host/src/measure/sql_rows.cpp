#include "measure/sql_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace bitnet::host::measure {
namespace {

using nlohmann::ordered_json;

enum class sql_type : uint8_t { integer, real, text };

sql_type type_of(const ordered_json& value) {
  if (value.is_boolean() || value.is_number_integer()) return sql_type::integer;
  return value.is_number() ? sql_type::real : sql_type::text;
}

struct column {
  std::string name;
  sql_type type;
};

std::vector<column> columns_of(const std::vector<ordered_json>& rows) {
  std::vector<column> out;
  for (const ordered_json& row : rows)
    for (const auto& [key, value] : row.items()) {
      if (!value.is_primitive() || value.is_null()) continue;
      const auto known = std::ranges::find(out, key, &column::name);
      if (known == out.end())
        out.push_back({key, type_of(value)});
      else
        known->type = std::max(known->type, type_of(value));
    }
  return out;
}

std::string in_quotes(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\0') continue;  // some databases end a text there
    out += c;
    if (c == quote) out += c;
  }
  return out + quote;
}

std::string literal(const ordered_json& value) {
  if (value.is_null()) return "NULL";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_number()) return value.dump();
  return in_quotes(value.get<std::string>(), '\'');
}

}  // namespace

std::string sql_rows(const std::vector<ordered_json>& rows) {
  constexpr std::string_view names[] = {"INTEGER", "REAL", "TEXT"};
  const std::vector<column> columns = columns_of(rows);
  if (columns.empty()) return "";
  std::string fields, list;
  for (const column& one : columns) {
    fields += fmt::format("{}  {} {}", fields.empty() ? "" : ",\n", in_quotes(one.name, '"'),
                          names[std::to_underlying(one.type)]);
    list += (list.empty() ? "" : ", ") + in_quotes(one.name, '"');
  }
  std::string out = fmt::format("CREATE TABLE IF NOT EXISTS bitnet_bench (\n{}\n);\n\n", fields);
  for (const ordered_json& row : rows) {
    std::string values;
    for (const column& one : columns) {
      const auto found = row.find(one.name);
      values += (values.empty() ? "" : ", ") +
                (found == row.end() || !found->is_primitive() ? "NULL" : literal(*found));
    }
    out += fmt::format("INSERT INTO bitnet_bench ({}) VALUES ({});\n", list, values);
  }
  return out;
}

}  // namespace bitnet::host::measure
