#pragma once
// Which rule of tokenizer.ggml.pre splits text as a tokenizer.json does.
//
// Errors   BITNET_UNSUPPORTED, naming the components, for a rule that is none of those.
// Source   docs/reference/tokenizers.md; the file's own field names.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bitnet::huggingface {

// The components of a Sequence under `list`, or the one that there is.
[[nodiscard]] std::vector<nlohmann::json> components_of(const nlohmann::json& one,
                                                        const char* list);

[[nodiscard]] result<std::string> splitting_rule(const nlohmann::json& file);

// Whether text is composed (NFC) first; BITNET_UNSUPPORTED for any other normalizer.
[[nodiscard]] result<bool> composes(const nlohmann::json& file);

}  // namespace bitnet::huggingface
