#pragma once
// Reads which tokens the post_processor of a tokenizer.json puts around a text.
//
// Errors  BITNET_UNSUPPORTED unless it is at most one token before and one behind; BITNET_BAD_DATA.
// Source  tokenizers' TemplateProcessing, BertProcessing, RobertaProcessing and ByteLevel.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/result.hpp"

namespace bitnet::huggingface {

struct framing {
  std::optional<uint32_t> first, last;
};

[[nodiscard]] result<framing> framing_of(const nlohmann::json& file);

}  // namespace bitnet::huggingface
