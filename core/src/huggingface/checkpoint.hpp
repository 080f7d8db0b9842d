#pragma once
// Reads a Hugging Face checkpoint, a folder of config.json, tokenizer.json and safetensors files,
// with GGUF's names and keys.
//
// Weights  Packed ternary ones in both conventions of scales, master weights of BitNet models (made
//          ternary when read) and plain matrices. Q and K of the llama architecture are marked,
//          since their rows are reordered. Nothing is copied: tensors are views of the mapped
//          files.
// Errors   BITNET_NOT_FOUND, BITNET_BAD_DATA or BITNET_UNSUPPORTED, naming the file of the folder.
// Source   docs/reference/weights.md#checkpoints, docs/reference/models.md

#include <filesystem>

#include "base/result.hpp"
#include "gguf/file.hpp"
#include "huggingface/config.hpp"

namespace bitnet::huggingface {

// Whether the path is a folder with a config.json.
bool is_checkpoint(const std::filesystem::path& path);

// Opens a checkpoint whose model_type is in `known`.
result<gguf::file> open(const std::filesystem::path& folder, forms known);

}  // namespace bitnet::huggingface
