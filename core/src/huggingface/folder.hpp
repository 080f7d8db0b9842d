#pragma once
// The files of a checkpoint's folder, and what is said where one is not what it should be.
//
// Errors  BITNET_NOT_FOUND for what is not there or may not be read, BITNET_BAD_DATA for what is
//         something else, BITNET_UNSUPPORTED for weights in a form that is not read.

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "gguf/mapping.hpp"

namespace bitnet::huggingface {

// A file of the folder. The message names it; `listed_as`, if any, says which of a list it is.
result<gguf::mapping> open_member(const std::filesystem::path& folder, const std::string& name,
                                  const std::string& listed_as = "");

// The same of the file with all weights: where it is not there, what is there instead.
result<gguf::mapping> open_weights(const std::filesystem::path& folder);

// The same of tokenizer.json.
result<gguf::mapping> open_tokenizer(const std::filesystem::path& folder);

// Why a folder without config.json is no model, by what it holds.
failure no_checkpoint(const std::filesystem::path& folder);

}  // namespace bitnet::huggingface
