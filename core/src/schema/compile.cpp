#include "schema/compile.hpp"

#include <utility>

#include "grammar/check.hpp"
#include "schema/form_reader.hpp"
#include "schema/json.hpp"
#include "schema/keywords.hpp"
#include "schema/rule_writer.hpp"

namespace bitnet::schema {

result<grammar::rule_set> compile(std::string_view text) {
  value_store store;
  const auto root = store.parse(text);
  if (!root) return std::unexpected(root.error());
  faults found;
  keyword_check checked(*root, found);
  form_reader forms(store, *root, checked, found);
  grammar::rule_set out;
  if (!found.any()) out = rule_writer(forms, found).run({*root});
  if (found.any()) return std::unexpected(*found.first());
  if (auto ok = grammar::check_rules(out); !ok)
    return pass_on(std::move(ok), "the grammar of the JSON schema");
  return out;
}

}  // namespace bitnet::schema
