#pragma once
// Writes values as JSON as Python's json.dumps does, for the filter tojson.

#include <string>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

struct json_form {
  bool ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string indent;  // of one level
};

// The result has the origin `own` only if all texts in `v` have it and no other value is written.
[[nodiscard]] marked_text json_text(rendering& at, const value& v, const json_form& form);

}  // namespace bitnet::jinja
