#pragma once
// The values that a schema allows, by type: its references are followed and its combinations
// merged.

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

// Schemas by which a value must be valid, each once, ordered by their numbers. None: any value.
using node = std::vector<const value*>;

[[nodiscard]] node joined(const node& a, const node& b);

using shared_texts = std::shared_ptr<const text_automaton>;

struct nulls {};

struct booleans {
  bool yes = true, no = true;
};

// The texts of some length that are in each of the automata.
struct strings {
  std::vector<shared_texts> each;
  uint32_t least = 0;
  std::optional<uint32_t> most;
};

struct arrays {
  std::vector<node> first;  // for the first items
  node rest;                // for each item behind them
  uint32_t least = 0;
  std::optional<uint32_t> most;
  [[nodiscard]] const node& item(std::size_t i) const { return i < first.size() ? first[i] : rest; }
};

struct property {
  std::string name;
  node is;
  bool required = false;
};

// Members that are not listed, by their names. No name is in two classes; a name in none is
// forbidden.
struct name_class {
  shared_texts names;
  node is;
};

struct objects {
  std::vector<property> listed;  // in the order in which they are written
  std::vector<name_class> others;
  std::vector<shared_texts> names;  // each name must be in all of these
  uint32_t least = 0;
  std::optional<uint32_t> most;
  // The schemas of a member of this name; nullptr if there may be none.
  [[nodiscard]] const node* member(const std::string& name) const;
  [[nodiscard]] uint32_t n_required() const;
};

struct choice {
  std::variant<nulls, booleans, numbers, strings, arrays, objects> is;
  const value* from = nullptr;  // the schema that it comes from, for messages
};
using form = std::vector<choice>;  // empty: no value

// The values that are valid by both; nullopt if there is plainly none.
[[nodiscard]] std::optional<choice> common(const choice& a, const choice& b, faults& to);
[[nodiscard]] form common(const form& a, const form& b, faults& to);

[[nodiscard]] text_automaton texts_of(const strings& of, faults& to);

}  // namespace bitnet::schema
