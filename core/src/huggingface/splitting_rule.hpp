#pragma once
// Finds the rule of tokenizer.ggml.pre that splits text as a tokenizer.json does.
//
// Errors   BITNET_UNSUPPORTED, naming the components, for an unknown rule.
// Source   docs/reference/tokenizers.md; the file's own field names.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bitnet::huggingface {

// The components of a Sequence under `list`, or the single component.
[[nodiscard]] std::vector<nlohmann::json> components_of(const nlohmann::json& one,
                                                        const char* list);

[[nodiscard]] result<std::string> splitting_rule(const nlohmann::json& file);

// Whether text is normalised to NFC first; BITNET_UNSUPPORTED for any other normalizer.
[[nodiscard]] result<bool> composes(const nlohmann::json& file);

}  // namespace bitnet::huggingface
