#pragma once
// The tokens of a text with a gap, as models that fill in text read them.
//
// Form    [rep]myproject [sep]NAME, TEXT of each other file [sep]filename
//         [pre] what is before [suf] what is behind [mid]
//         The first line stands there in a repository, as far as the model has these tokens; a
//         model without [sep] has the texts of the other files behind a line of their own.
// Source  llama-server's /infill, and arXiv:2409.12186, section 3.2.2.

#include "openai/prompt.hpp"

namespace bitnet::host::openai {

// An error has the status 400: the model does not fill in text, or a text is no UTF-8.
[[nodiscard]] parsed<prompt> infill_prompt(const text_or_ids& before, const infill_gap& gap,
                                           const bitnet_model* with);

}  // namespace bitnet::host::openai
