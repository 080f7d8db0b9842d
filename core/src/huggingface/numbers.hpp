#pragma once
// The numbers of a small tensor of a checkpoint, where GGUF wants others.

#include <vector>

#include "gguf/file.hpp"

namespace bitnet::huggingface {

// Of F32, F16 or BF16.
std::vector<float> numbers_of(const gguf::file::foreign_tensor& t);
// F32 from then on, in memory that the tensor keeps.
void replace(gguf::file::foreign_tensor& t, std::vector<float> numbers);

}  // namespace bitnet::huggingface
