#pragma once
// Reads how an embedding is pooled from the vectors of the tokens: modules.json and the
// configuration of its module Pooling.
//
// Errors  BITNET_UNSUPPORTED for other modules and kinds of pooling, BITNET_BAD_DATA.
// Source  sentence-transformers, its module Pooling

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.hpp"
#include "huggingface/members.hpp"

namespace bitnet::huggingface {

// The number of <architecture>.pooling_type in GGUF; nullopt: the folder has none.
[[nodiscard]] result<std::optional<uint32_t>> pooling_of(const std::filesystem::path& folder,
                                                         members_left_out& out);

}  // namespace bitnet::huggingface
