#pragma once
// Replaces the numbers of a small tensor of a checkpoint, if GGUF stores others.

#include <vector>

#include "gguf/file.hpp"

namespace bitnet::huggingface {

// `t` has the type F32, F16 or BF16.
std::vector<float> numbers_of(const gguf::file::foreign_tensor& t);
// Stores `numbers` as F32, in memory that the tensor owns.
void replace(gguf::file::foreign_tensor& t, std::vector<float> numbers);

}  // namespace bitnet::huggingface
