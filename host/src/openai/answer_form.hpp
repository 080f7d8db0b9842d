#pragma once
// The form that a body asks its answer to have: a grammar or a JSON schema.

#include <string_view>

#include "openai/generation_fields.hpp"

namespace bitnet::host::openai {

// response_format, and `grammar` and `json_schema` as llama-server has them; at most one of them
// asks for a form. `body`: the text of the object that `in` reads.
void read_form(field_reader& in, std::string_view body, generation_wish& how);
// The member `format` of `outer`, as other APIs have it: {"type", "schema"}.
void read_format_of(field_reader& in, std::string_view body, const char* outer,
                    generation_wish& how);

}  // namespace bitnet::host::openai
