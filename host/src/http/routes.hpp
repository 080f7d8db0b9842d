#pragma once
// The handler of each method and path. /openapi.json is generated from the same table.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/exchange.hpp"

namespace bitnet::host::http {

// A member of the body's JSON object, or of the query, for /openapi.json.
struct parameter {
  std::string_view name;
  std::string_view type;  // in JSON Schema: "string", "integer", "array", "object", ...
  std::string_view help;
  bool required = false;
};

// The key that a route requires: none, one of api_keys, or one of the admin keys.
enum class access_level : uint8_t { open, key, admin };

struct route {
  std::string_view method;              // "GET" also answers HEAD
  std::vector<std::string_view> paths;  // "/v1/models/{id}": {id} is one non-empty part
  std::string_view summary;
  std::function<void(const exchange_ptr&)> handle;
  access_level access = access_level::key;
  std::size_t body_bytes = 0;  // limit of the body; 0: limits::body_bytes. GET has none
  std::string_view content_type = "application/json";
  const error_form* errors = nullptr;  // its API's form; nullptr: OpenAI's. Outlives the table
  // Names of schemas for /openapi.json: the JSON of the answer, of each event of a stream, and of
  // an answer with status 409; "": none.
  std::string_view answer = {}, event = {}, conflict = {};
  std::vector<parameter> body = {};
  std::vector<parameter> query = {};
};

class route_table {
 public:
  // Rows are searched in the order of add().
  void add(route row) { rows_.push_back(std::move(row)); }

  struct found {
    const route* row = nullptr;                                    // nullptr: see `allowed`
    std::vector<std::pair<std::string, std::string>> values = {};  // values of {parts}, decoded
    std::string allowed = {};  // methods of the path: "GET, HEAD, OPTIONS"; "": no such path
  };
  [[nodiscard]] found find(std::string_view method, std::string_view path) const;
  // The form of errors for a request: of the route with its path or a prefix of it, else of the API
  // whose header field it has; nullptr: OpenAI's.
  [[nodiscard]] const error_form* errors_for(const request& asked) const;
  [[nodiscard]] const std::vector<route>& rows() const { return rows_; }

 private:
  std::vector<route> rows_;
};

// Decodes "a%20b" to "a b"; false for '%' without two hexadecimal digits, and for %00.
[[nodiscard]] bool percent_decode(std::string_view text, std::string& out);
// The value of a key in "a=1&b=2"; "" if there is none. '+' means a blank.
[[nodiscard]] std::string query_value(std::string_view query, std::string_view key);

struct service_facts {
  std::string_view title, version, description;
};
// Returns OpenAPI 3.1 as JSON. `schemas`: JSON objects that map names to schemas, "Error" among
// them.
[[nodiscard]] std::string open_api_of(const route_table& table, const service_facts& about,
                                      std::span<const std::string_view> schemas);

}  // namespace bitnet::host::http
