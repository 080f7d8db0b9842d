#pragma once
// Reads the form that a body demands of its answer: a grammar or a JSON schema.

#include <string_view>

#include "openai/generation_fields.hpp"

namespace bitnet::host::openai {

// Reads response_format, and llama-server's `grammar` and `json_schema`; at most one may set a
// form. `body`: raw text of the object that `in` reads.
void read_form(field_reader& in, std::string_view body, generation_wish& how);
// Reads the member `format` of `outer`, as other APIs have it: {"type", "schema"}.
void read_format_of(field_reader& in, std::string_view body, const char* outer,
                    generation_wish& how);

}  // namespace bitnet::host::openai
