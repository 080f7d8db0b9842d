#pragma once
// A Hugging Face checkpoint, a folder of config.json, tokenizer.json and safetensors files, in the
// words of GGUF.
//
// Weights  packed ternary ones in both conventions of scales, master weights of BitNet models (made
//          ternary when read) and plain matrices; Q and K of the llama architecture are marked for
//          the reordering of their rows. Nothing is copied: tensors are views of the mapped files.
// Errors   BITNET_NOT_FOUND, BITNET_BAD_DATA or BITNET_UNSUPPORTED, naming the file of the folder.
// Source   docs/reference/weights.md#checkpoints, docs/reference/models.md

#include <filesystem>

#include "base/result.hpp"
#include "gguf/file.hpp"
#include "huggingface/config.hpp"

namespace bitnet::huggingface {

// Whether the path is a folder with a config.json.
bool is_checkpoint(const std::filesystem::path& path);

// By the form of its model_type among those that are known.
result<gguf::file> open(const std::filesystem::path& folder, forms known);

}  // namespace bitnet::huggingface
