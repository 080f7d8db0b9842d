#include "formats/reading.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "bitnet/abi/tensor.h"
#include "formats/floats.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

namespace type = gguf::type;

struct dense {
  uint32_t type;
  uint32_t format;
  std::array<int32_t, 2> scales;  // byte positions of f16 scales in a block, -1 if none
};

constexpr std::array denses = {
    dense{type::f32, BITNET_FORMAT_F32, {-1, -1}},
    dense{type::f16, BITNET_FORMAT_F16, {-1, -1}},
    dense{type::bf16, BITNET_FORMAT_BF16, {-1, -1}},
    dense{type::q8_0, BITNET_FORMAT_Q8_0, {0, -1}},
    dense{type::q4_0, BITNET_FORMAT_Q4_0, {0, -1}},
    dense{type::q4_k, BITNET_FORMAT_Q4_K, {0, 2}},
    dense{type::q6_k, BITNET_FORMAT_Q6_K, {208, -1}},
};

std::string readable_types() {
  std::string out;
  for (const dense& d : denses) out += gguf::type_name(d.type) + ", ";
  return out + gguf::type_name(type::tq1_0) + ", " + gguf::type_name(type::tq2_0) + " and " +
         gguf::type_name(type::i2_s);
}

bool is_ternary(uint32_t id) {
  return id == type::i2_s || id == type::tq1_0 || id == type::tq2_0;
}

result<reading> understand_dense(const source& from, const dense& d) {
  const uint64_t block = gguf::size_of(from.type).value_or(gguf::type_size{1, 1}).bytes;
  for (const int32_t at : d.scales)
    for (uint64_t i = 0; at >= 0 && i < from.bytes.size(); i += block)
      if (!std::isfinite(
              from_f16(gguf::load<uint16_t>(from.bytes.subspan(i + static_cast<uint64_t>(at))))))
        return fail(BITNET_BAD_DATA, gguf::say("the scale of block ", i / block,
                                               " is not a finite number; the file is damaged"));
  reading to;
  to.format = d.format;
  to.data_bytes = from.bytes.size();
  to.verbatim = true;
  return to;
}

float vector_element(const source& from, uint64_t i) {
  if (from.type == type::f32) return gguf::load<float>(from.bytes.subspan(4 * i));
  const auto bits = gguf::load<uint16_t>(from.bytes.subspan(2 * i));
  return from.type == type::f16 ? from_f16(bits) : from_bf16(bits);
}

void pack(const codes& from, std::span<std::byte> to) {
  for (size_t p = 0; p < 32; ++p)
    to[p] =
        static_cast<std::byte>(from[p] << 6 | from[p + 32] << 4 | from[p + 64] << 2 | from[p + 96]);
}

}  // namespace

bool has_code_3(std::span<const std::byte> packed) {
  constexpr uint64_t low_bits = 0x5555555555555555;
  uint64_t found = 0;
  size_t i = 0;
  for (; i + 8 <= packed.size(); i += 8) {
    const auto word = gguf::load<uint64_t>(packed.subspan(i));
    found |= word & word >> 1 & low_bits;
  }
  for (; i < packed.size(); ++i) {
    const auto byte = std::to_integer<uint64_t>(packed[i]);
    found |= byte & byte >> 1 & low_bits;
  }
  return found != 0;
}

uint64_t canonical_bytes(uint64_t k, uint64_t m) {
  return (k + group - 1) / group * (group / 4) * m;
}

bool is_readable(uint32_t type) {
  return is_ternary(type) || std::ranges::find(denses, type, &dense::type) != denses.end();
}

result<reading> understand(const source& from) {
  if (from.type == type::i2_s) return understand_i2s(from);
  if (from.type == type::tq1_0 || from.type == type::tq2_0) return understand_tq(from);
  const auto* d = std::ranges::find(denses, from.type, &dense::type);
  if (d != denses.end()) return understand_dense(from, *d);
  return fail(BITNET_UNSUPPORTED,
              gguf::say("has type ", gguf::type_name(from.type), "; this program reads ",
                        readable_types(), ": convert the model to one of these"));
}

result<reading> understand_vector(const source& from) {
  if (from.type != type::f32 && from.type != type::f16 && from.type != type::bf16)
    return fail(BITNET_UNSUPPORTED, gguf::say("has type ", gguf::type_name(from.type),
                                              "; expected F32, F16 or BF16 for a vector"));
  for (uint64_t i = 0; i < from.k; ++i)
    if (!std::isfinite(vector_element(from, i)))
      return fail(BITNET_BAD_DATA,
                  gguf::say("element ", i, " is not a finite number; the file is damaged"));
  reading to;
  to.format = BITNET_FORMAT_F32;
  to.data_bytes = from.k * sizeof(float);
  to.verbatim = from.type == type::f32;
  return to;
}

void convert(const source& from, const reading& to, uint64_t offset, std::span<std::byte> out) {
  if (to.format == BITNET_FORMAT_F32) {
    for (uint64_t i = 0; i < out.size() / sizeof(float); ++i) {
      const float x = vector_element(from, offset / sizeof(float) + i);
      std::memcpy(&out[i * sizeof(float)], &x, sizeof x);
    }
    return;
  }
  constexpr uint64_t group_bytes = group / 4;
  const uint64_t groups_per_row = (from.k + group - 1) / group;
  codes c;
  for (uint64_t done = 0; done < out.size(); done += group_bytes) {
    const uint64_t index = (offset + done) / group_bytes;
    const uint64_t row = index / groups_per_row;
    const uint64_t column = index % groups_per_row * group;
    c.fill(1);
    const auto used = std::span(c).first(std::min(group, from.k - column));
    if (from.type == type::i2_s)
      i2s_codes(from, row, column, used);
    else
      tq_codes(from, row, column, used);
    pack(c, out.subspan(done, group_bytes));
  }
}

}  // namespace bitnet::formats
