#include "schema/keywords.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "schema/formats.hpp"
#include "schema/number_texts.hpp"
#include "schema/pattern.hpp"

namespace bitnet::schema {
namespace {

enum argument_kind : int {
  a_schema,
  schemas,
  named_schemas,
  patterned_schemas,
  a_number,
  a_step,
  a_count,
  a_pattern,
  a_format,
  a_reference,
  names,
  types,
  data,
  data_list,
  false_only,
  dialect,
  identifier,
  annotation,
  rejected
};

struct keyword_row {
  std::string_view name;
  argument_kind kind;
  std::string_view why = {};  // it is rejected: why, and what to do
};

constexpr std::string_view no_complement =
    "what it excludes cannot be followed character by character; say what may come";
constexpr std::string_view no_condition =
    "conditions are not supported; write the cases as anyOf, each with all of its members";
constexpr std::string_view no_evaluation =
    "it depends on other keywords; write additionalProperties or items";
constexpr std::string_view no_search = "it would need to look for an item; say what each item is";
constexpr std::string_view no_dynamic =
    "references that change at run time are not supported; use "
    "$ref to $defs";
constexpr std::string_view no_content = "encoded texts are not supported; use pattern";
constexpr std::string_view earlier =
    "it belongs to an earlier draft; use dependentRequired's meaning as anyOf";

constexpr keyword_row rows[] = {
    {"type", types},
    {"enum", data_list},
    {"const", data},
    {"properties", named_schemas},
    {"patternProperties", patterned_schemas},
    {"additionalProperties", a_schema},
    {"propertyNames", a_schema},
    {"required", names},
    {"minProperties", a_count},
    {"maxProperties", a_count},
    {"items", a_schema},
    {"prefixItems", schemas},
    {"minItems", a_count},
    {"maxItems", a_count},
    {"uniqueItems", false_only, "it would need to compare items; take it out, or bound maxItems"},
    {"minLength", a_count},
    {"maxLength", a_count},
    {"pattern", a_pattern},
    {"format", a_format},
    {"minimum", a_number},
    {"maximum", a_number},
    {"exclusiveMinimum", a_number},
    {"exclusiveMaximum", a_number},
    {"multipleOf", a_step},
    {"anyOf", schemas},
    {"oneOf", schemas},
    {"allOf", schemas},
    {"$ref", a_reference},
    {"$defs", named_schemas},
    {"definitions", named_schemas},
    {"$schema", dialect},
    {"$id", identifier},
    {"title", annotation},
    {"description", annotation},
    {"default", annotation},
    {"examples", annotation},
    {"deprecated", annotation},
    {"readOnly", annotation},
    {"writeOnly", annotation},
    {"$comment", annotation},
    {"not", rejected, no_complement},
    {"if", rejected, no_condition},
    {"then", rejected, no_condition},
    {"else", rejected, no_condition},
    {"dependentRequired", rejected, no_condition},
    {"dependentSchemas", rejected, no_condition},
    {"dependencies", rejected, earlier},
    {"contains", rejected, no_search},
    {"minContains", rejected, no_search},
    {"maxContains", rejected, no_search},
    {"unevaluatedItems", rejected, no_evaluation},
    {"unevaluatedProperties", rejected, no_evaluation},
    {"additionalItems", rejected, "it belongs to an earlier draft; use prefixItems and items"},
    {"contentEncoding", rejected, no_content},
    {"contentMediaType", rejected, no_content},
    {"contentSchema", rejected, no_content},
    {"$anchor", rejected, "use $ref with a path: #/$defs/NAME"},
    {"$dynamicRef", rejected, no_dynamic},
    {"$dynamicAnchor", rejected, no_dynamic},
    {"$recursiveRef", rejected, no_dynamic},
    {"$recursiveAnchor", rejected, no_dynamic},
    {"$vocabulary", rejected, "vocabularies of one's own are not supported"},
    {"id", rejected, "it belongs to an earlier draft; use $id"},
};

constexpr std::string_view type_list[] = {"null",   "boolean", "integer", "number",
                                          "string", "array",   "object"};

bool is_dialect(std::string_view address) {
  if (!address.starts_with("http")) return false;
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{
          "json-schema.org/draft/2020-12/schema", "json-schema.org/draft/2019-09/schema",
          "json-schema.org/draft-07/schema", "json-schema.org/draft-06/schema"},
      [&](std::string_view d) { return address.find(d) != std::string_view::npos; });
}

std::string shown(const std::string& name) {
  constexpr std::size_t most = 60;
  return name.size() <= most ? name : name.substr(0, most) + "...";
}

}  // namespace

keyword_check::keyword_check(const value* root, faults& to) : root_(root), to_(to) {
  if (const value* dialect = root->find("$schema"); dialect != nullptr)
    refs_stand_alone_ = dialect->text.find("draft-0") != std::string::npos;
  check(root);
}

void keyword_check::check(const value* schema) {
  todo_.push_back(schema);
  while (!todo_.empty() && !to_.any()) {
    const value* at = todo_.back();
    todo_.pop_back();
    if (met_.insert(at).second) one(*at);
  }
  todo_.clear();
}

void keyword_check::one(const value& schema) {
  if (schema.what == value::kind::boolean) return;
  if (schema.what != value::kind::object)
    return to_.wrong(schema.where(), fmt::format("expected a schema, which is an object, true or "
                                                 "false; found {}",
                                                 name_of(schema.what)));
  for (const member& m : schema.members) {
    if (!to_.spend(1)) return;
    keyword(schema, m);
  }
  if (refs_stand_alone_ && schema.find("$ref") != nullptr)
    for (const member& m : schema.members) {
      const auto* row = std::ranges::find(rows, m.name, &keyword_row::name);
      if (m.name != "$ref" && row != std::end(rows) && row->kind != annotation &&
          row->kind != named_schemas && row->kind != dialect && row->kind != identifier)
        to_.unsupported(m.is->where(),
                        "drafts 6 and 7 ignore a keyword beside $ref; take it out, "
                        "or name draft 2020-12 in $schema, which does not");
    }
}

void keyword_check::keyword(const value& schema, const member& m) {
  const auto* const row = std::ranges::find(rows, m.name, &keyword_row::name);
  if (row == std::end(rows)) {
    if (!m.name.starts_with("x-"))
      to_.unsupported(
          m.is->where(),
          fmt::format("the keyword '{}' is not known, so that what it asks for would be "
                      "missed; mend the name, or let it begin with x- if it is a note",
                      shown(m.name)));
    return;
  }
  if (row->kind == rejected)
    return to_.unsupported(m.is->where(),
                           fmt::format("{} is not supported: {}", row->name, row->why));
  if (row->kind == false_only && m.is->what == value::kind::boolean && m.is->truth)
    return to_.unsupported(m.is->where(),
                           fmt::format("{} is not supported: {}", row->name, row->why));
  argument(schema, m, row->kind);
}

// Reports a wrong argument unless `truth`; returns `truth`.
bool keyword_check::expect(const member& m, bool truth, std::string_view what) {
  if (!truth)
    to_.wrong(m.is->where(),
              fmt::format("{} expects {}, found {}", m.name, what, name_of(m.is->what)));
  return truth;
}

void keyword_check::argument(const value& schema, const member& m, int kind) {
  using k = value::kind;
  const value& of = *m.is;
  switch (kind) {
    case a_schema:
    case schemas:
    case named_schemas:
    case patterned_schemas:
      return inner_schemas(m, kind);
    case a_number:
    case a_step:
    case a_count:
      return number(m, kind);
    case a_pattern:
      if (expect(m, of.what == k::string, "a regular expression, as a string"))
        static_cast<void>(parse_pattern(of.text, of.where(), to_));
      break;
    case a_format:
      if (expect(m, of.what == k::string, "the name of a format, as a string") &&
          pattern_of_format(of.text).empty())
        to_.unsupported(of.where(), fmt::format("the format '{}' is not supported; {} are. Use "
                                                "pattern, or take it out",
                                                shown(of.text), format_names()));
      break;
    case names:
      expect(m,
             of.what == k::array &&
                 std::ranges::all_of(of.items, [](const value* v) { return v->what == k::string; }),
             "a list of names");
      break;
    case types:
      type_names(of);
      break;
    case data_list:
      expect(m, of.what == k::array, "a list of values");
      break;
    case false_only:
      expect(m, of.what == k::boolean, "true or false");
      break;
    case dialect:
      if (expect(m, of.what == k::string, "the address of a draft, as a string") &&
          !is_dialect(of.text))
        to_.unsupported(of.where(),
                        "this dialect is not known; use "
                        "https://json-schema.org/draft/2020-12/schema, or leave it out");
      break;
    case identifier:
      if (expect(m, of.what == k::string, "an address, as a string") && &schema != root_)
        to_.unsupported(of.where(),
                        "$id is supported at the root only: elsewhere it changes what "
                        "references mean");
      break;
    case a_reference:
      expect(m, of.what == k::string, "a reference, as a string");
      break;
    default:
      break;
  }
}

void keyword_check::inner_schemas(const member& m, int kind) {
  const value& of = *m.is;
  if (kind == a_schema) {
    if (m.name == "items" && of.what == value::kind::array)
      return to_.unsupported(of.where(),
                             "a list of schemas belongs to an earlier draft; use "
                             "prefixItems, and items for the rest");
    todo_.push_back(&of);
  } else if (kind == schemas) {
    if (expect(m, of.what == value::kind::array && !of.items.empty(),
               "a list of schemas, at least one"))
      todo_.insert(todo_.end(), of.items.rbegin(), of.items.rend());
  } else if (expect(m, of.what == value::kind::object, "an object of schemas")) {
    for (const member& one : of.members) {
      todo_.push_back(one.is);
      if (kind == patterned_schemas)
        static_cast<void>(parse_pattern(one.name, one.is->where(), to_));
    }
  }
}

void keyword_check::number(const member& m, int kind) {
  const value& of = *m.is;
  if (!expect(m, of.what == value::kind::number, "a number")) return;
  const auto n = decimal::parse(of.text);
  if (!n) return to_.unsupported(of.where(), "the number has more than 100 digits");
  if (kind == a_step && !can_step(*n))
    to_.unsupported(of.where(),
                    "multiples are supported of the integers from 1 to 2000, and of 0.1, 0.01, "
                    "0.001 and so on; use one of these, or enum");
  if (kind == a_count) expect(m, n->is_integer() && !n->negative, "an integer of at least 0");
}

void keyword_check::type_names(const value& of) {
  const auto known = [](const value* v) {
    return v->what == value::kind::string &&
           std::ranges::find(type_list, v->text) != std::end(type_list);
  };
  if (known(&of)) return;
  if (of.what == value::kind::array && !of.items.empty() && std::ranges::all_of(of.items, known))
    return;
  to_.wrong(of.where(),
            "type expects null, boolean, integer, number, string, array or object, or a "
            "list of these");
}

uint32_t count_of(const value& of) {
  const auto n = decimal::parse(of.text);
  constexpr uint32_t most = 1'000'000'000;
  if (!n || *n > decimal::of(most)) return most;
  return static_cast<uint32_t>(std::stoul(n->whole));
}

}  // namespace bitnet::schema
