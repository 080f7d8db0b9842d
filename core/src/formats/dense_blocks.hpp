#pragma once
// Converts the dense block types of GGUF to and from float32, in whole blocks.
//
// Exact    F32, F16 and BF16 round half to even. Q8_0 and Q4_0 are the bytes that ggml writes.
// Source   docs/reference/weights.md#dense-types

#include <cstddef>
#include <span>

namespace bitnet::formats {

void write_f32(std::span<const float> from, std::span<std::byte> out);
void write_f16(std::span<const float> from, std::span<std::byte> out);
void write_bf16(std::span<const float> from, std::span<std::byte> out);
void write_q8_0(std::span<const float> from, std::span<std::byte> out);
void write_q4_0(std::span<const float> from, std::span<std::byte> out);
// Chooses each scale by least squares over a few step sizes, for 16 elements at a time.
void write_q6_k(std::span<const float> from, std::span<std::byte> out);

}  // namespace bitnet::formats
