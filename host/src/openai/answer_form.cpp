#include "openai/answer_form.hpp"

#include <fmt/format.h>

#include <string>

#include "library/handles.hpp"
#include "openai/json_grammar.hpp"
#include "openai/raw_member.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

// Records that `member` sets the form; an error if another member did already.
void claim(field_reader& in, const char* member, generation_wish& how) {
  if (!how.form_member.empty())
    in.keep(invalid(member, fmt::format("'{}' and '{}' both ask for a form; give only one of them",
                                        how.form_member, member))
                .error());
  how.form_member = member;
}

void read_grammar(field_reader& in, generation_wish& how) {
  std::string grammar;
  in.text("grammar", grammar);
  if (grammar.empty()) return;
  library_error err;
  const bitnet_status status = bitnet_grammar_check(borrowed(grammar), &err);
  if (status != BITNET_OK) in.keep(error_of(status, err.message, "grammar"));
  claim(in, "grammar", how);
  how.grammar = std::move(grammar);
}

// Reads the member `name` as a JSON schema. `object` is the raw text of the enclosing object, since
// generated members follow the order in the schema's text.
void read_schema(field_reader& in, std::string_view object, const char* name,
                 generation_wish& how) {
  const json* const found = in.any(name);
  if (in.error()) return;
  if (found == nullptr || (!found->is_object() && !found->is_boolean()))
    return in.wrong(name, "a JSON schema, which is an object");
  how.json_schema = raw_member(object, name);
  library_error err;
  const bitnet_status status = bitnet_json_schema_check(borrowed(how.json_schema), &err);
  if (status == BITNET_OK) return;
  const std::string path = in.path_of(name);
  in.keep(error_of(status, fmt::format("'{}': {}", path, err.message), path));
}

// Reads {"name", "strict", "schema"}. A schema is always followed strictly; the name is for clients
// only.
void read_named_schema(field_reader& format, std::string_view text, generation_wish& how) {
  const json* const found = format.any("json_schema");
  if (found == nullptr || !found->is_object())
    return format.wrong("json_schema", "an object with 'schema'");
  field_reader named(*found, format.path_of("json_schema."));
  read_schema(named, raw_member(text, "json_schema"), "schema", how);
  if (const auto& why = named.error()) format.keep(*why);
}

// `text`: raw text of response_format.
void read_typed(field_reader& format, std::string_view text, generation_wish& how) {
  std::string type;
  format.text("type", type);
  const json* const schema = format.any("schema");
  if (type == "json_schema") {
    read_named_schema(format, text, how);
  } else if (type == "json_object" && schema != nullptr && !schema->empty()) {
    read_schema(format, text, "schema", how);
  } else if (type == "json_object") {
    how.grammar = json_grammar;
  } else if (type != "text") {
    format.wrong("type", "\"text\", \"json_object\" or \"json_schema\"");
  }
}

// Takes over the form that was read into `asked`.
void take_form(field_reader& in, const field_reader& format, const char* member,
               generation_wish&& asked, generation_wish& how) {
  if (const auto& why = format.error()) return in.keep(*why);
  if (!asked.has_form()) return;
  claim(in, member, how);
  how.grammar = std::move(asked.grammar);
  how.json_schema = std::move(asked.json_schema);
}

}  // namespace

void read_form(field_reader& in, std::string_view body, generation_wish& how) {
  read_grammar(in, how);
  if (in.any("json_schema") != nullptr) {
    claim(in, "json_schema", how);
    read_schema(in, body, "json_schema", how);
  }
  const json* const found = in.any("response_format");
  if (found == nullptr || in.error()) return;
  if (!found->is_object()) return in.wrong("response_format", "an object with 'type'");
  field_reader format(*found, "response_format.");
  generation_wish asked;
  read_typed(format, raw_member(body, "response_format"), asked);
  take_form(in, format, "response_format", std::move(asked), how);
}

void read_format_of(field_reader& in, std::string_view body, const char* outer,
                    generation_wish& how) {
  const json* const found = in.any(outer);
  if (found == nullptr || in.error()) return;
  if (!found->is_object()) return in.wrong(outer, "an object with 'format'");
  field_reader within(*found, fmt::format("{}.", outer));
  const json* const form = within.any("format");
  if (form == nullptr) return;
  if (!form->is_object()) within.wrong("format", "an object with 'type'");
  if (const auto& why = within.error()) return in.keep(*why);
  const std::string member = within.path_of("format");
  field_reader format(*form, member + ".");
  generation_wish asked;
  const std::string_view written = raw_member(raw_member(body, outer), "format");
  if (const auto type = form->find("type"); type != form->end() && *type == "json_schema")
    read_schema(format, written, "schema", asked);
  else
    read_typed(format, written, asked);
  take_form(in, format, member.c_str(), std::move(asked), how);
}

}  // namespace bitnet::host::openai
