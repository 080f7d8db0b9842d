#pragma once
// Values as JSON, as Python's json.dumps writes it for the filter tojson of chat templates.

#include <string>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

struct json_form {
  bool ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string indent;  // of one level
};

[[nodiscard]] std::string json_text(rendering& at, const value& v, const json_form& form);

}  // namespace bitnet::jinja
