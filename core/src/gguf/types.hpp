#pragma once
// Tensor types by their GGUF id: names for messages, and sizes where the id alone decides them.
//
// Source  formats.md 1. Id 36 and its neighbours mean different things in different programs, so
//         their size is left to whoever knows the flavour (formats/i2s.hpp).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bitnet::gguf {

namespace type {
inline constexpr uint32_t f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 8, q4_k = 12, q6_k = 14, bf16 = 30,
                          tq1_0 = 34, tq2_0 = 35, i2_s = 36, tl1 = 38, tl2 = 39;
}  // namespace type

struct type_size {
  uint32_t block;  // elements along ne[0]
  uint32_t bytes;  // of one block
};

// nullopt: unknown id, or one whose size depends on more than the id.
std::optional<type_size> size_of(uint32_t id);
// "I2_S"; empty for an unknown id.
std::string_view short_name(uint32_t id);
// "I2_S (36)", or "unknown (200)".
std::string type_name(uint32_t id);

}  // namespace bitnet::gguf
