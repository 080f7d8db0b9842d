#pragma once
// A request as it was read: checked by head_check, with its body decoded.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::host::http {

struct field {
  std::string name;   // lower case
  std::string value;  // without white space around it
};

struct request {
  std::string method = {};
  std::string path = {};   // without query, as sent: "/v1/models/a%20b"; "*" of OPTIONS
  std::string query = {};  // after '?', as sent
  bool is_1_1 = true;      // false: HTTP/1.0
  std::vector<field> fields = {};
  std::string body = {};

  // The server sets these:
  std::string id = {};    // from x-request-id, or a new one
  std::string peer = {};  // "127.0.0.1:51234", "unix"
  std::vector<std::pair<std::string, std::string>> path_values = {};  // {id} etc., decoded

  // The value of a field; "" if there is none, the first one if there are several. `name` is in
  // lower case.
  [[nodiscard]] std::string_view value_of(std::string_view name) const {
    for (const field& one : fields)
      if (one.name == name) return one.value;
    return {};
  }
  [[nodiscard]] bool has(std::string_view name) const {
    for (const field& one : fields)
      if (one.name == name) return true;
    return false;
  }
  [[nodiscard]] std::string_view path_value(std::string_view name) const {
    for (const auto& [key, value] : path_values)
      if (key == name) return value;
    return {};
  }
};

}  // namespace bitnet::host::http
