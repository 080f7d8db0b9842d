#include "probe/golden_formats.hpp"

#include <bit>

#include "bitnet/abi/tensor.h"

namespace bitnet::probe::golden {
namespace {

// Factors of blocks: 1 or 2. A block has `size` elements.
constexpr uint32_t block_factor(uint32_t row, uint32_t k, uint32_t size) {
  return 1 + (row + k / size) % 2;
}
constexpr int block_code(uint32_t row, uint32_t k, uint32_t count) {
  return static_cast<int>(mixed(row, k) % count);
}

// Of 32 elements in q4_k: factors and minima of six bits.
constexpr uint32_t factors_of_32[] = {1, 2, 35, 3, 1, 20, 2, 49};
constexpr uint32_t minima_of_32[] = {0, 5, 33, 1, 17, 2, 63, 4};
constexpr uint32_t factor_of_32(uint32_t row, uint32_t k) {
  return factors_of_32[(row + k / 32) % 8];
}
constexpr uint32_t minimum_of_32(uint32_t row, uint32_t k) {
  return minima_of_32[(row * 3 + k / 32) % 8];
}
// Of 16 elements in q6_k.
constexpr int factor_of_16(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 3 + k / 16 * 5) % 9) - 4;
}

void put_byte(std::string& out, int value) {
  out += static_cast<char>(static_cast<uint8_t>(value));
}
// 1 or 2 as f16.
void put_half(std::string& out, uint32_t factor) {
  put_byte(out, 0);
  put_byte(out, factor == 1 ? 0x3c : 0x40);
}

// A block of each format, as GGUF has it, from element k of a row on.

void put_q8_0(std::string& out, uint32_t row, uint32_t k) {
  put_half(out, block_factor(row, k, 32));
  for (uint32_t i = 0; i < 32; ++i) put_byte(out, block_code(row, k + i, 128) - 64);
}

void put_q4_0(std::string& out, uint32_t row, uint32_t k) {
  put_half(out, block_factor(row, k, 32));
  for (uint32_t i = 0; i < 16; ++i)
    put_byte(out, block_code(row, k + i, 16) | block_code(row, k + i + 16, 16) << 4);
}

// Factors and minima 0 to 3 are the low bits of bytes 0 to 3 and 4 to 7; of the others four bits
// each are in bytes 8 to 11, and the rest in the high bits of those before.
void put_q4_k(std::string& out, uint32_t row, uint32_t k) {
  put_half(out, block_factor(row, k, 256));
  put_half(out, 3 - block_factor(row, k, 256));
  const auto factor = [&](uint32_t i) { return static_cast<int>(factor_of_32(row, k + 32 * i)); };
  const auto minimum = [&](uint32_t i) { return static_cast<int>(minimum_of_32(row, k + 32 * i)); };
  for (uint32_t i = 0; i < 4; ++i) put_byte(out, factor(i) | factor(i + 4) >> 4 << 6);
  for (uint32_t i = 0; i < 4; ++i) put_byte(out, minimum(i) | minimum(i + 4) >> 4 << 6);
  for (uint32_t i = 4; i < 8; ++i) put_byte(out, (factor(i) & 15) | (minimum(i) & 15) << 4);
  for (uint32_t at = k; at < k + 256; at += 64)
    for (uint32_t i = 0; i < 32; ++i)
      put_byte(out, block_code(row, at + i, 16) | block_code(row, at + i + 32, 16) << 4);
}

// Of each 128 codes: the low four bits of the first and the third 32, of the second and the fourth,
// and the high two bits of all four.
void put_q6_k(std::string& out, uint32_t row, uint32_t k) {
  const auto code = [&](uint32_t at) { return block_code(row, at, 64); };
  for (uint32_t at = k; at < k + 256; at += 128)
    for (uint32_t i = 0; i < 64; ++i)
      put_byte(out, (code(at + i) & 15) | (code(at + i + 64) & 15) << 4);
  for (uint32_t at = k; at < k + 256; at += 128)
    for (uint32_t i = 0; i < 32; ++i)
      put_byte(out, code(at + i) >> 4 | code(at + i + 32) >> 4 << 2 | code(at + i + 64) >> 4 << 4 |
                        code(at + i + 96) >> 4 << 6);
  for (uint32_t i = 0; i < 16; ++i) put_byte(out, factor_of_16(row, k + 16 * i));
  put_half(out, block_factor(row, k, 256));
}

struct block_format {
  uint32_t format, size;  // elements
  void (*put)(std::string& out, uint32_t row, uint32_t k);
};
constexpr block_format block_formats[] = {
    {BITNET_FORMAT_Q8_0, 32, put_q8_0},
    {BITNET_FORMAT_Q4_0, 32, put_q4_0},
    {BITNET_FORMAT_Q4_K, 256, put_q4_k},
    {BITNET_FORMAT_Q6_K, 256, put_q6_k},
};

}  // namespace

int number_of_q8_0(uint32_t row, uint32_t k) {
  return static_cast<int>(block_factor(row, k, 32)) * (block_code(row, k, 128) - 64);
}
int number_of_q4_0(uint32_t row, uint32_t k) {
  return static_cast<int>(block_factor(row, k, 32)) * (block_code(row, k, 16) - 8);
}
int number_of_q4_k(uint32_t row, uint32_t k) {
  const uint32_t factor = block_factor(row, k, 256), of_minimum = 3 - factor;
  return static_cast<int>(factor * factor_of_32(row, k)) * block_code(row, k, 16) -
         static_cast<int>(of_minimum * minimum_of_32(row, k));
}
int number_of_q6_k(uint32_t row, uint32_t k) {
  return static_cast<int>(block_factor(row, k, 256)) * factor_of_16(row, k) *
         (block_code(row, k, 64) - 32);
}

std::string bytes_of(uint32_t format, uint32_t columns, uint32_t rows, element at, float unit) {
  std::string out;
  const auto put = [&out](const auto& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const block_format& one : block_formats)
    for (uint32_t r = 0; one.format == format && r < rows; ++r)
      for (uint32_t k = 0; k < columns; k += one.size) one.put(out, r, k);
  if (!out.empty()) return out;
  for (uint32_t r = 0; r < rows; ++r) {
    if (format == BITNET_FORMAT_TERNARY2) {
      for (uint32_t b = 0; b < columns / 4; ++b) {
        uint32_t byte = 0;
        for (uint32_t i = 0; i < 4; ++i)
          byte = byte << 2 | static_cast<uint32_t>(at(r, b / 32 * 128 + 32 * i + b % 32) + 1);
        out += static_cast<char>(byte);
      }
      continue;
    }
    for (uint32_t k = 0; k < columns; ++k) {
      const auto value = static_cast<float>(at(r, k)) * unit;
      const auto bits = std::bit_cast<uint32_t>(value);
      if (format == BITNET_FORMAT_F32)
        put(value);
      else if (format == BITNET_FORMAT_BF16)
        put(static_cast<uint16_t>(bits >> 16));
      else  // f16: only the exponent moves, for 0 and small integers
        put(static_cast<uint16_t>(
            value == 0 ? 0 : (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112U << 10))));
    }
  }
  return out;
}

}  // namespace bitnet::probe::golden
