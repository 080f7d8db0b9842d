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

constexpr std::string_view open_ai_error = "Error";

ordered_json ref_to(std::string_view kind, std::string_view name) {
  return {{"$ref", "#/components/" + std::string(kind) + "/" + std::string(name)}};
}

ordered_json content_of(std::string_view schema) {
  return schema.empty() ? ordered_json::object()
                        : ordered_json{{"schema", ref_to("schemas", schema)}};
}

// The answer and the route's own errors; other errors are the default.
ordered_json responses_of(const route& row, std::string_view path) {
  ordered_json content = {{std::string(row.content_type), content_of(row.answer)}};
  if (!row.event.empty()) content["text/event-stream"] = content_of(row.event);
  ordered_json out = {{"200", {{"description", "The answer"}, {"content", std::move(content)}}}};
  if (!row.conflict.empty())
    out["409"] = {{"description", "Nothing has changed"},
                  {"content", {{"application/json", content_of(row.conflict)}}}};
  const ordered_json error =
      ref_to("responses", row.errors != nullptr ? row.errors->schema : open_ai_error);
  const bool has_key = row.access != access_level::open;
  const struct {
    const char* status;
    bool is_there;
  } rows[] = {{"400", row.method == "POST"},
              {"401", has_key},
              {"404", path.contains('{')},
              {"413", row.method == "POST"},
              {"503", true},  // too many connections
              {"default", true}};
  for (const auto& one : rows)
    if (one.is_there) out[one.status] = error;
  return out;
}

ordered_json operation_of(const route& row, std::string_view path) {
  ordered_json out = {{"operationId", operation_id(row.method, path)}, {"summary", row.summary}};
  if (auto parameters = parameters_of(row, path); !parameters.empty())
    out["parameters"] = std::move(parameters);
  if (!row.body.empty())
    out["requestBody"] = {{"required", true},
                          {"content", {{"application/json", {{"schema", schema_of(row.body)}}}}}};
  out["responses"] = responses_of(row, path);
  out["security"] = row.access != access_level::open
                        ? ordered_json::array({{{"bearer", ordered_json::array()}},
                                               {{"header", ordered_json::array()}}})
                        : ordered_json::array();
  return out;
}

ordered_json error_of(std::string_view schema) {
  return {{"description", "Why there is no answer"},
          {"content", {{"application/json", {{"schema", ref_to("schemas", schema)}}}}}};
}

ordered_json components(const route_table& table, std::span<const std::string_view> schemas) {
  ordered_json all = ordered_json::object();
  for (const std::string_view text : schemas) all.update(ordered_json::parse(text));
  ordered_json errors = {{std::string(open_ai_error), error_of(open_ai_error)}};
  for (const route& row : table.rows())
    if (row.errors != nullptr)
      errors[std::string(row.errors->schema)] = error_of(row.errors->schema);
  return {{"securitySchemes",
           {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
            {"header", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}}},
          {"responses", std::move(errors)},
          {"schemas", std::move(all)}};
}

}  // namespace

std::string open_api_of(const route_table& table, const service_facts& about,
                        std::span<const std::string_view> schemas) {
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
      {"components", components(table, schemas)}};
  return out.dump();
}

}  // namespace bitnet::host::http
