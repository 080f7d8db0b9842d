// The route table as OpenAPI 3.1.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "http/routes.hpp"

namespace bitnet::host::http {
namespace {

using nlohmann::ordered_json;

ordered_json schema_of(const std::vector<parameter>& members) {
  ordered_json properties = ordered_json::object(), required = ordered_json::array();
  for (const parameter& one : members) {
    ordered_json& to = properties[std::string(one.name)] = ordered_json::object();
    if (one.type != "any") to["type"] = one.type;
    if (one.type == "array") to["items"] = ordered_json::object();
    to["description"] = one.help;
    if (one.required) required.push_back(one.name);
  }
  ordered_json out = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

ordered_json parameters_of(const route& row, std::string_view path) {
  ordered_json out = ordered_json::array();
  for (auto at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    const std::string_view name = path.substr(at + 1, path.find('}', at) - at - 1);
    out.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  }
  for (const parameter& one : row.query)
    out.push_back({{"name", one.name},
                   {"in", "query"},
                   {"description", one.help},
                   {"schema", {{"type", one.type}}}});
  return out;
}

// "get_v1_models_id" of GET /v1/models/{id}
std::string operation_id(std::string_view method, std::string_view path) {
  std::string out;
  for (const char c : method) out += static_cast<char>(c | 0x20);
  for (const char c : path)
    if (c == '/' || c == '-' || c == '.')
      out += '_';
    else if (c != '{' && c != '}')
      out += c;
  return out;
}

ordered_json operation_of(const route& row, std::string_view path) {
  ordered_json out = {{"operationId", operation_id(row.method, path)}, {"summary", row.summary}};
  if (auto parameters = parameters_of(row, path); !parameters.empty())
    out["parameters"] = std::move(parameters);
  if (!row.body.empty())
    out["requestBody"] = {{"required", true},
                          {"content", {{"application/json", {{"schema", schema_of(row.body)}}}}}};
  const ordered_json error = {{"$ref", "#/components/responses/error"}};
  out["responses"] = {{"200",
                       {{"description", "The answer"},
                        {"content", {{std::string(row.content_type), ordered_json::object()}}}}},
                      {"default", error}};
  out["security"] = row.access != access_level::open
                        ? ordered_json::array({{{"bearer", ordered_json::array()}},
                                               {{"header", ordered_json::array()}}})
                        : ordered_json::array();
  return out;
}

ordered_json components() {
  const ordered_json text = {{"type", "string"}};
  const ordered_json text_or_null = {{"type", {"string", "null"}}};
  const ordered_json error = {
      {"type", "object"},
      {"properties",
       {{"message", text}, {"type", text}, {"param", text_or_null}, {"code", text_or_null}}},
      {"required", ordered_json::array({"message", "type", "param", "code"})}};
  const ordered_json whole = {{"type", "object"},
                              {"properties", {{"error", error}}},
                              {"required", ordered_json::array({"error"})}};
  return {{"securitySchemes",
           {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
            {"header", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}}},
          {"responses",
           {{"error",
             {{"description", "Why there is no answer"},
              {"content", {{"application/json", {{"schema", whole}}}}}}}}}};
}

}  // namespace

std::string open_api_of(const route_table& table, const service_facts& about) {
  ordered_json paths = ordered_json::object();
  for (const route& row : table.rows())
    for (const std::string_view path : row.paths) {
      std::string method(row.method);
      for (char& c : method) c = static_cast<char>(c | 0x20);
      paths[std::string(path)][method] = operation_of(row, path);
    }
  const ordered_json out = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", about.title}, {"version", about.version}, {"description", about.description}}},
      {"paths", std::move(paths)},
      {"components", components()}};
  return out.dump();
}

}  // namespace bitnet::host::http
