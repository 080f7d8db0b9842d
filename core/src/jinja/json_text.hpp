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

// The template's own where all texts in it are and nothing else is written out.
[[nodiscard]] marked_text json_text(rendering& at, const value& v, const json_form& form);

}  // namespace bitnet::jinja
