#pragma once
// Tensor types by their GGUF id: names for messages, and sizes where the id alone decides them.
//
// Source  docs/reference/weights.md#type-ids. Ids 36, 42, 142 and their neighbours mean different
//         things in different programs, so their size is left to formats/, which knows them all.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bitnet::gguf {

namespace type {
inline constexpr uint32_t f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 8, q4_k = 12, q6_k = 14, bf16 = 30,
                          tq1_0 = 34, tq2_0 = 35, i2_s = 36, tl1 = 38, tl2 = 39, q1_0 = 41,
                          q2_0 = 42, stq1_0 = 43, iq1_bn = 134, iq2_bn = 135, pq2_0 = 142,
                          ptq1_0 = 143, iq2_bn_r4 = 335;
// Types of linear layers in Hugging Face checkpoints; no GGUF file has them. Packed weights are
// multiplied by their scale or, inverse, divided. Masters are made ternary when they are read.
inline constexpr uint32_t first_own = 0x10000, hf_packed = 0x10000, hf_packed_inverse = 0x10001,
                          hf_master_f32 = 0x10002, hf_master_f16 = 0x10003,
                          hf_master_bf16 = 0x10004;
}  // namespace type

// general.file_type: the type of most tensors, by the writer. docs/reference/weights.md#file-types
namespace file_type {
inline constexpr int64_t f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 7, q6_k = 18, bf16 = 32, tq1_0 = 36,
                         tq2_0 = 37, tl1 = 38, tl2 = 39, i2_s = 40, q1_0 = 40, q2_0 = 41,
                         iq2_bn = 137, pq2_0 = 141, ptq1_0 = 143;
}  // namespace file_type

struct type_size {
  uint32_t block;  // elements along ne[0]
  uint32_t bytes;  // of one block
};

// nullopt: unknown id, or the size depends on more than the id.
std::optional<type_size> size_of(uint32_t id);
// "I2_S"; "" for an unknown id.
std::string_view short_name(uint32_t id);
// "I2_S (36)", or "unknown (200)".
std::string type_name(uint32_t id);

}  // namespace bitnet::gguf
