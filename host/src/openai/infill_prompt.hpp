#pragma once
// Makes the tokens of a text with a gap, for models that fill in text.
//
// Form    [rep]myproject [sep]NAME, TEXT of each other file [sep]filename
//         [pre] text before the gap [suf] text after it [mid]
//         The first line is used for a repository, as far as the model has these tokens. Without
//         [sep], the texts of the other files follow a separator line each.
// Source  llama-server's /infill, and arXiv:2409.12186, section 3.2.2.

#include "openai/prompt.hpp"

namespace bitnet::host::openai {

// An error has the status 400: the model cannot fill in text, or a text is not UTF-8.
[[nodiscard]] parsed<prompt> infill_prompt(const text_or_ids& before, const infill_gap& gap,
                                           const bitnet_model* with);

}  // namespace bitnet::host::openai
