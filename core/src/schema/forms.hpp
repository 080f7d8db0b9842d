#pragma once
// What a value must be, by type: the meaning of a schema with its references followed and its
// combinations merged.

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schema/json.hpp"
#include "schema/limits.hpp"
#include "schema/number_texts.hpp"
#include "schema/text_automaton.hpp"

namespace bitnet::schema {

// A value that is valid by each of these schemas; by their numbers, each once. Of none: any value.
using node = std::vector<const value*>;

[[nodiscard]] node joined(const node& a, const node& b);

using shared_texts = std::shared_ptr<const text_automaton>;

struct nulls {};

struct booleans {
  bool yes = true, no = true;
};

// Texts that are in each of the automata, of a length.
struct strings {
  std::vector<shared_texts> each;
  uint32_t least = 0;
  std::optional<uint32_t> most;
};

struct arrays {
  std::vector<node> first;  // of the first items
  node rest;                // of each item behind them
  uint32_t least = 0;
  std::optional<uint32_t> most;
  [[nodiscard]] const node& item(std::size_t i) const { return i < first.size() ? first[i] : rest; }
};

struct property {
  std::string name;
  node is;
  bool required = false;
};

// Members that are not listed, by their names; no name is in two of these. Names in none may not
// be there.
struct name_class {
  shared_texts names;
  node is;
};

struct objects {
  std::vector<property> listed;  // in the order in which they are written
  std::vector<name_class> others;
  std::vector<shared_texts> names;  // that each name must be in
  uint32_t least = 0;
  std::optional<uint32_t> most;
  // What a member of this name must be; nullptr where there may be none.
  [[nodiscard]] const node* member(const std::string& name) const;
  [[nodiscard]] uint32_t n_required() const;
};

struct choice {
  std::variant<nulls, booleans, numbers, strings, arrays, objects> is;
  const value* from = nullptr;  // the schema, for messages
};
using form = std::vector<choice>;  // of none: no value

// What is valid by both; nothing where that is plainly no value.
[[nodiscard]] std::optional<choice> common(const choice& a, const choice& b, faults& to);
[[nodiscard]] form common(const form& a, const form& b, faults& to);

[[nodiscard]] text_automaton texts_of(const strings& of, faults& to);

}  // namespace bitnet::schema
