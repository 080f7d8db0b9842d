#pragma once
// Checks the arguments of each keyword of JSON Schema, and rejects unsupported keywords.

#include <string_view>
#include <unordered_set>

#include "schema/decimal.hpp"
#include "schema/json.hpp"
#include "schema/limits.hpp"

namespace bitnet::schema {

// Checks a schema and all schemas in it, each once, whether or not a value can reach them.
class keyword_check {
 public:
  keyword_check(const value* root, faults& to);
  // The constructor checks the root. Schemas elsewhere are checked when a reference leads to them.
  void check(const value* schema);

 private:
  void one(const value& schema);
  void keyword(const value& schema, const member& m);
  void argument(const value& schema, const member& m, int kind);
  void inner_schemas(const member& m, int kind);
  void number(const member& m, int kind);
  bool expect(const member& m, bool truth, std::string_view what);
  void type_names(const value& of);

  const value* root_;
  faults& to_;
  bool refs_stand_alone_ = false;  // drafts 6 and 7 ignore what is beside $ref
  std::unordered_set<const value*> met_;
  std::vector<const value*> todo_;
};

// The argument of a keyword that counts characters, items or members. It was checked.
[[nodiscard]] uint32_t count_of(const value& of);

}  // namespace bitnet::schema
