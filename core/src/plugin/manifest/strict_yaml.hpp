#pragma once
// A subset of YAML: maps, lists and scalars. Anchors, aliases, tags, duplicate keys, several
// documents and deep nesting are errors, because files that decide which code runs must be
// unambiguous. Built from the parser's events, so nothing is ever expanded.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::plugin {

struct yaml_member;

struct yaml_node {
  enum class kind_type : uint8_t { scalar, list, map };
  kind_type kind = kind_type::scalar;
  bool quoted = false;  // "1" is text, 1 is a number
  std::string text;     // of a scalar; "" if missing
  std::vector<yaml_node> items;
  std::vector<yaml_member> members;
  int line = 0, column = 0;  // from 1
};

struct yaml_member {
  std::string key;
  int line = 0, column = 0;
  yaml_node value;
};

struct yaml_error {
  int line = 0, column = 0;
  std::string message;
};

// Parses `text`, which must be one document. Never throws.
[[nodiscard]] std::expected<yaml_node, yaml_error> parse_strict_yaml(const std::string& text);

}  // namespace bitnet::plugin
