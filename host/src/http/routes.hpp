#pragma once
// Which handler answers which method and path. /openapi.json is generated of the same table.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/exchange.hpp"

namespace bitnet::host::http {

// For /openapi.json: a member of the body's JSON object, or of the query.
struct parameter {
  std::string_view name;
  std::string_view type;  // of JSON Schema: "string", "integer", "array", "object", ...
  std::string_view help;
  bool required = false;
};

// Which key a route asks for: none, one of api_keys, or one of the admin keys.
enum class access_level : uint8_t { open, key, admin };

struct route {
  std::string_view method;              // "GET" also answers HEAD
  std::vector<std::string_view> paths;  // "/v1/models/{id}": {id} is one part, not empty
  std::string_view summary;
  std::function<void(const exchange_ptr&)> handle;
  access_level access = access_level::key;
  std::size_t body_bytes = 0;  // of the body; 0: limits::body_bytes. GET has none
  std::string_view content_type = "application/json";
  const error_form* errors = nullptr;  // of its API; nullptr: OpenAI's. Lives as long as the table
  // For /openapi.json, names of schemas: of the answer's JSON, of the data of each event of a
  // stream, and of an answer with the status 409; "": there is none.
  std::string_view answer = {}, event = {}, conflict = {};
  std::vector<parameter> body = {};
  std::vector<parameter> query = {};
};

class route_table {
 public:
  // Rows are searched in the order in which they were added.
  void add(route row) { rows_.push_back(std::move(row)); }

  struct found {
    const route* row = nullptr;                                    // nullptr: see `allowed`
    std::vector<std::pair<std::string, std::string>> values = {};  // of {parts}, decoded
    std::string allowed = {};  // "GET, HEAD, OPTIONS" of the path; "": there is no such path
  };
  [[nodiscard]] found find(std::string_view method, std::string_view path) const;
  // The form of errors for a request: that of the row whose path it has or is below, else of an API
  // whose field it has; nullptr: OpenAI's.
  [[nodiscard]] const error_form* errors_for(const request& asked) const;
  [[nodiscard]] const std::vector<route>& rows() const { return rows_; }

 private:
  std::vector<route> rows_;
};

// "a%20b" is "a b"; false for '%' without two hexadecimal digits, and for %00.
[[nodiscard]] bool percent_decode(std::string_view text, std::string& out);
// The value of a key of "a=1&b=2", "" where it has none. '+' is a blank.
[[nodiscard]] std::string query_value(std::string_view query, std::string_view key);

struct service_facts {
  std::string_view title, version, description;
};
// OpenAPI 3.1 as JSON. `schemas`: JSON of objects, each with schemas by their names; "Error" is
// among them.
[[nodiscard]] std::string open_api_of(const route_table& table, const service_facts& about,
                                      std::span<const std::string_view> schemas);

}  // namespace bitnet::host::http
