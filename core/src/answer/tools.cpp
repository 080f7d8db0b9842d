#include "answer/tools.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "json/reading.hpp"

namespace bitnet::answer {
namespace {

constexpr std::size_t longest_name = 64;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= longest_name && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

std::vector<std::string> types_of(const json::value& schema) {
  std::vector<std::string> out;
  if (!schema.is_object()) return out;
  const json::value& type = json::member(schema, "type");
  if (type.is_string()) out.push_back(type.get<std::string>());
  if (type.is_array())
    for (const json::value& one : type)
      if (one.is_string()) out.push_back(one.get<std::string>());
  const json::value& choices = json::member(schema, "enum");
  if (out.empty() && choices.is_array() && !choices.empty() &&
      std::ranges::all_of(choices, [](const json::value& one) { return one.is_string(); }))
    out.emplace_back("string");
  return out;
}

result<tool> read_tool(const json::value& given, const std::string& path) {
  if (!given.is_object()) return json::rejected(path, "an object", given);
  const json::value& type = json::member(given, "type");
  if (!type.is_null() && type != "function")
    return json::rejected(path + ".type", "'function', as no other tools can be described", type);
  const bool wrapped = given.contains("function");
  const json::value& function = wrapped ? given.find("function").value() : given;
  const std::string at = wrapped ? path + ".function" : path;
  if (!function.is_object()) return json::rejected(at, "an object", function);
  const json::value& name = json::member(function, "name");
  if (!name.is_string() || !is_name(name.get_ref<const std::string&>()))
    return json::rejected(at + ".name", "a name of 1 to 64 letters, digits, '_', '-' and '.'",
                          name);
  tool out{name.get<std::string>(), {}};
  const json::value& strict = json::member(function, "strict");
  if (!strict.is_null() && !strict.is_boolean())
    return json::rejected(at + ".strict", "true or false", strict);
  out.strict = strict == true;
  const json::value& parameters = json::member(function, "parameters");
  if (parameters.is_null()) return out;
  if (!parameters.is_object())
    return json::rejected(at + ".parameters", "a JSON Schema, which is an object", parameters);
  out.schema = json::written(parameters);
  out.schema_path = at + ".parameters";
  const json::value& properties = json::member(parameters, "properties");
  if (properties.is_null()) return out;
  if (!properties.is_object())
    return json::rejected(at + ".parameters.properties", "an object", properties);
  for (const auto& [key, schema] : properties.items())
    out.parameters.push_back({key, types_of(schema)});
  return out;
}

}  // namespace

const parameter* tool::find(std::string_view parameter_name) const {
  const auto found = std::ranges::find(parameters, parameter_name, &parameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

const tool* find(const tools& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &tool::name);
  return found == all.end() ? nullptr : &*found;
}

result<tools> read_tools(const json::value& list, std::string_view path) {
  if (!list.is_array()) return json::rejected(path, "a list of tools", list);
  tools out;
  std::set<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    auto one = read_tool(list[i], at);
    if (!one) return std::unexpected(one.error());
    if (!names.insert(one->name).second)
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("{}: expected a name that no other tool has, found '{}' again", at,
                              one->name));
    out.push_back(*std::move(one));
  }
  return out;
}

result<tools> parse_tools(std::string_view text, std::string_view path) {
  if (text.empty()) return tools{};
  const auto list = json::read(text, path);
  if (!list) return std::unexpected(list.error());
  return read_tools(*list, path);
}

}  // namespace bitnet::answer
