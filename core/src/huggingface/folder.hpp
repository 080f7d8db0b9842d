#pragma once
// Opens the files of a checkpoint's folder, with messages for missing and wrong ones.
//
// Errors  BITNET_NOT_FOUND for files that are missing or not readable, BITNET_BAD_DATA for files of
//         another kind, BITNET_UNSUPPORTED for weights in a form that bitnet does not read.

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "gguf/mapping.hpp"

namespace bitnet::huggingface {

// Opens a file of the folder. Messages name it, and if set `listed_as`, its role in a list.
result<gguf::mapping> open_member(const std::filesystem::path& folder, const std::string& name,
                                  const std::string& listed_as = "");

// Opens the file with all weights. If it is missing, the message says what the folder has instead.
result<gguf::mapping> open_weights(const std::filesystem::path& folder);

// Opens tokenizer.json, likewise.
result<gguf::mapping> open_tokenizer(const std::filesystem::path& folder);

// Explains why a folder without config.json is no model, by its contents.
failure no_checkpoint(const std::filesystem::path& folder);

}  // namespace bitnet::huggingface
