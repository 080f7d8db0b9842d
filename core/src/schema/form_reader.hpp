#pragma once
// Reads schemas as forms.
//
// Errors  in `faults`: a reference that leads nowhere or to itself, cases of oneOf that may
//         overlap, and passed bounds.

#include <map>
#include <unordered_map>
#include <vector>

#include "schema/forms.hpp"
#include "schema/json.hpp"
#include "schema/keywords.hpp"
#include "schema/limits.hpp"
#include "schema/pattern.hpp"

namespace bitnet::schema {

class form_reader {
 public:
  form_reader(value_store& store, const value* root, keyword_check& checked, faults& to)
      : store_(store), root_(root), checked_(checked), to_(to) {}

  // The form of values that are valid by all of the schemas.
  form form_of(const node& of);

 private:
  form read(const value* schema);
  form combined(const value& schema);
  form own(const value& schema);
  form of_values(const std::vector<const value*>& values, const value& schema);
  form one_of_cases(const form& base, const value& cases);
  const value* referred(const value& reference);

  numbers read_numbers(const value& schema, bool integer);
  strings read_strings(const value& schema);
  arrays read_arrays(const value& schema);
  std::optional<objects> read_objects(const value& schema);
  std::vector<name_class> read_others(const value& schema);
  choice object_of(const value& object);
  shared_texts pattern(const std::string& text, matching how, const value& from);
  const value* constant(const value* of);
  node node_of(const value* schema);

  bool is_void(const choice& one, uint32_t depth);
  bool is_void(const node& of, uint32_t depth);

  value_store& store_;
  const value* root_;
  keyword_check& checked_;
  faults& to_;
  std::unordered_map<const value*, form> known_;
  std::map<std::vector<uint32_t>, form> known_nodes_;  // by the numbers of their schemas
  std::unordered_map<const value*, const value*> constants_;
  std::map<std::pair<std::string, bool>, shared_texts> patterns_;
  std::vector<const value*> path_;  // schemas that are being read
  // While two cases are compared, schemas that were begun before are not known.
  std::size_t known_from_ = 0;
  bool met_unknown_ = false;
};

}  // namespace bitnet::schema
