#include "schema/compile.hpp"

#include <utility>

#include "grammar/check.hpp"
#include "schema/form_reader.hpp"
#include "schema/json.hpp"
#include "schema/keywords.hpp"
#include "schema/rule_writer.hpp"

namespace bitnet::schema {

namespace {

result<grammar::rule_set> compiled(std::string_view text, const notation* arguments,
                                   faults& found) {
  value_store store;
  const auto root = store.parse(text);
  if (!root) return std::unexpected(root.error());
  keyword_check checked(*root, found);
  form_reader forms(store, *root, checked, found);
  grammar::rule_set out;
  if (!found.any()) {
    rule_writer writer(forms, found, arguments == nullptr ? notation{} : *arguments);
    out = arguments == nullptr ? writer.run({*root}) : writer.run_arguments({*root});
  }
  if (found.any()) return std::unexpected(*found.first());
  if (auto ok = grammar::check_rules(out); !ok)
    return pass_on(std::move(ok), "the grammar of the JSON schema");
  return out;
}

}  // namespace

result<grammar::rule_set> compile(std::string_view text) {
  faults found;
  return compiled(text, nullptr, found);
}

result<grammar::rule_set> compile_arguments(std::string_view text, const notation& how,
                                            uint64_t& work) {
  faults found(work);
  auto out = compiled(text, &how, found);
  work = found.work();
  return out;
}

}  // namespace bitnet::schema
