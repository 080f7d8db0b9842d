#pragma once
// How an embedding is made of what the model computes for tokens: modules.json and the
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

// As files number it under <architecture>.pooling_type; nullopt: the folder does not say.
[[nodiscard]] result<std::optional<uint32_t>> pooling_of(const std::filesystem::path& folder,
                                                         members_left_out& out);

}  // namespace bitnet::huggingface
