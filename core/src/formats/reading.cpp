#include "formats/reading.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/dense_formats.hpp"
#include "base/floats.hpp"
#include "base/for_each_part.hpp"
#include "bitnet/abi/tensor.h"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

namespace type = gguf::type;

#define BITNET_FORM(name, reader) form{type::name, understand_##reader},
constexpr std::array all_forms = {BITNET_TERNARY_FORMS(BITNET_FORM)};
#undef BITNET_FORM

struct dense {
  uint32_t type;
  uint32_t format;
  std::array<int32_t, 2> scales;  // offsets of f16 scales in a block, -1: none
};

#define BITNET_DENSE(name, id, scale, second) \
  dense{type::name, BITNET_FORMAT_##id, {scale, second}},
constexpr std::array denses = {BITNET_DENSE_FORMATS(BITNET_DENSE)};
#undef BITNET_DENSE

std::string readable_types() {
  std::string out;
  for (const dense& d : denses) out += fmt::format("{}, ", gguf::type_name(d.type));
  for (const form& f : all_forms)
    if (f.type < type::first_own) out += fmt::format("{}, ", gguf::type_name(f.type));
  return out.substr(0, out.size() - 2);
}

uint64_t before_reordering(const gguf::head_reordering& t, uint64_t index) {
  if (index < t.first) return index;
  const uint64_t head = (index - t.first) / t.width;
  const uint64_t stored = head % t.groups * t.in_group + head / t.groups;
  return t.first + stored * t.width + (index - t.first) % t.width;
}

void dense_rows(const source& from, uint64_t offset, std::span<std::byte> out) {
  const uint64_t row_bytes = from.bytes.size() / from.m;
  const auto size = gguf::size_of(from.type).value_or(gguf::type_size{1, 1});
  for (uint64_t done = 0; done < out.size();) {
    const uint64_t row = (offset + done) / row_bytes;
    uint64_t at = (offset + done) % row_bytes;
    uint64_t run = row_bytes - at;
    if (from.head_order
            .columns) {  // only float types, with blocks of one element, are reordered so
      const uint64_t column = at / size.bytes;
      at = stored_column(from, column) * size.bytes;
      run = columns_together(from, column) * size.bytes;
    }
    run = std::min(run, out.size() - done);
    std::memcpy(&out[done], &from.bytes[stored_row(from, row) * row_bytes + at], run);
    done += run;
  }
}

result<reading> understand_dense(const source& from, const dense& d) {
  const uint64_t block = gguf::size_of(from.type).value_or(gguf::type_size{1, 1}).bytes;
  for (const int32_t at : d.scales)
    for (uint64_t i = 0; at >= 0 && i < from.bytes.size(); i += block)
      if (!std::isfinite(
              from_f16(gguf::load<uint16_t>(from.bytes.subspan(i + static_cast<uint64_t>(at))))))
        return fail(BITNET_BAD_DATA,
                    fmt::format("the scale of block {} is not a finite number; the file is damaged",
                                i / block));
  reading to;
  to.format = d.format;
  to.data_bytes = from.bytes.size();
  to.verbatim = !is_rearranged(from);
  to.bytes = dense_rows;
  to.how = by_type(from);
  return to;
}

void vector_bytes(const source& from, uint64_t offset, std::span<std::byte> out) {
  for (uint64_t i = 0; i < out.size() / sizeof(float); ++i) {
    const float x = real_element(from.type, from.bytes, offset / sizeof(float) + i);
    std::memcpy(&out[i * sizeof(float)], &x, sizeof x);
  }
}

using group_codes = std::array<uint8_t, group>;

void pack(const group_codes& from, std::span<std::byte> to) {
  for (size_t p = 0; p < 32; ++p)
    to[p] =
        static_cast<std::byte>(from[p] << 6 | from[p + 32] << 4 | from[p + 64] << 2 | from[p + 96]);
}

bool part_has_code_3(std::span<const std::byte> packed) {
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

}  // namespace

std::span<const form> forms() {
  return all_forms;
}

std::string by_type(const source& from) {
  return fmt::format("{}, by its type", gguf::short_name(from.type));
}

result<void> check_bytes(const source& from, uint64_t needed, std::string_view name) {
  const auto padded = gguf::checked_pad(needed, from.alignment);
  if (from.bytes.size() >= needed && padded && from.bytes.size() <= *padded) return {};
  return fail(
      BITNET_BAD_DATA,
      fmt::format("{} of {} rows and {} columns takes {} bytes, but the file reserves {}{}", name,
                  from.m, from.k, needed, from.bytes.size(),
                  from.bytes.size() < needed ? ": it is cut off or damaged; download it again"
                                             : ", as no known writer does"));
}

result<void> check_blocks(const source& from, uint64_t elements, uint64_t bytes,
                          std::string_view name) {
  if (from.k % elements != 0)
    return fail(BITNET_BAD_DATA,
                fmt::format("{} has rows of {} elements; expected a multiple of {}", name, from.k,
                            elements));
  return check_bytes(from, from.k / elements * from.m * bytes, name);
}

bool has_code_3(std::span<const std::byte> packed) {
  // For matrices; some formats are read block by block. Half of the time is page faults on the
  // mapped file, which each thread takes by itself.
  constexpr size_t part_bytes = size_t{512} << 10;
  std::atomic<bool> found{false};
  base::for_each_part((packed.size() + part_bytes - 1) / part_bytes, [&](uint64_t i) {
    const auto part = packed.subspan(i * part_bytes);
    if (part_has_code_3(part.first(std::min(part_bytes, part.size()))))
      found.store(true, std::memory_order_relaxed);
  });
  return found;
}

uint64_t canonical_bytes(uint64_t k, uint64_t m) {
  return (k + group - 1) / group * (group / 4) * m;
}

reading ternary_reading(const source& from, codes_of codes, uint64_t scale_group,
                        std::vector<float> scales, std::string how) {
  reading to;
  to.format = BITNET_FORMAT_TERNARY2;
  to.data_bytes = canonical_bytes(from.k, from.m);
  to.codes = std::move(codes);
  to.how = std::move(how);
  const auto is_zero = [](float s) { return s == 0; };
  if (std::ranges::any_of(scales, is_zero)) {
    to.zero_group = scale_group != 0 ? scale_group : std::max<uint64_t>(from.k * from.m, 1);
    for (const float s : scales) to.zeros.push_back(is_zero(s));
  }
  const auto first = std::ranges::find_if_not(scales, is_zero);
  const float common = first == scales.end() ? 0 : *first;
  if (std::ranges::all_of(scales, [&](float s) { return is_zero(s) || s == common; })) {
    to.scales = {common};
  } else {
    to.scale_group = scale_group;
    to.scales = std::move(scales);
  }
  return to;
}

void read_codes(const source& from, const reading& to, uint64_t row, uint64_t column,
                std::span<uint8_t> out) {
  to.codes(from, row, column, out);
  if (to.zeros.empty()) return;
  const uint64_t first = row * from.k + column;
  for (uint64_t j = 0; j < out.size(); ++j)
    if (to.zeros[(first + j) / to.zero_group]) out[j] = 1;
}

uint64_t stored_row(const source& from, uint64_t row) {
  if (from.head_order.groups != 0 && !from.head_order.columns)
    return before_reordering(from.head_order, row);
  if (from.rotated_heads == 0) return row;
  const uint64_t head = from.m / from.rotated_heads;
  const uint64_t at = row % head;
  return row - at + at % 2 * (head / 2) + at / 2;
}

uint64_t stored_column(const source& from, uint64_t column) {
  return from.head_order.columns ? before_reordering(from.head_order, column) : column;
}

uint64_t columns_together(const source& from, uint64_t column) {
  const gguf::head_reordering& t = from.head_order;
  if (!t.columns) return from.k - column;
  return column < t.first ? t.first - column : t.width - (column - t.first) % t.width;
}

bool is_rearranged(const source& from) {
  return from.rotated_heads != 0 || from.head_order.groups != 0;
}

bool is_readable(uint32_t type) {
  return std::ranges::find(all_forms, type, &form::type) != all_forms.end() ||
         std::ranges::find(denses, type, &dense::type) != denses.end();
}

result<reading> understand(const source& from) {
  const auto* f = std::ranges::find(all_forms, from.type, &form::type);
  if (f != all_forms.end()) return f->understand(from);
  const auto* d = std::ranges::find(denses, from.type, &dense::type);
  if (d != denses.end()) return understand_dense(from, *d);
  return fail(BITNET_UNSUPPORTED,
              fmt::format("has type {}; this program reads {}: convert the model to one of these",
                          gguf::type_name(from.type), readable_types()));
}

float real_element(uint32_t type, std::span<const std::byte> bytes, uint64_t index) {
  if (type == type::f32) return gguf::load<float>(bytes.subspan(4 * index));
  const auto bits = gguf::load<uint16_t>(bytes.subspan(2 * index));
  return type == type::f16 ? from_f16(bits) : from_bf16(bits);
}

result<reading> understand_vector(const source& from) {
  if (from.type != type::f32 && from.type != type::f16 && from.type != type::bf16)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("has type {}; expected F32, F16 or BF16 for a vector",
                            gguf::type_name(from.type)));
  for (uint64_t i = 0; i < from.k; ++i)
    if (!std::isfinite(real_element(from.type, from.bytes, i)))
      return fail(BITNET_BAD_DATA,
                  fmt::format("element {} is not a finite number; the file is damaged", i));
  reading to;
  to.format = BITNET_FORMAT_F32;
  to.data_bytes = from.k * sizeof(float);
  to.verbatim = from.type == type::f32;
  to.bytes = vector_bytes;
  to.how = by_type(from);
  return to;
}

void convert(const source& from, const reading& to, uint64_t offset, std::span<std::byte> out) {
  if (to.bytes) return to.bytes(from, offset, out);
  constexpr uint64_t group_bytes = group / 4;
  const uint64_t groups_per_row = (from.k + group - 1) / group;
  group_codes c;
  for (uint64_t done = 0; done < out.size(); done += group_bytes) {
    const uint64_t index = (offset + done) / group_bytes;
    const uint64_t row = index / groups_per_row;
    const uint64_t column = index % groups_per_row * group;
    c.fill(1);
    read_codes(from, to, row, column, std::span(c).first(std::min(group, from.k - column)));
    pack(c, out.subspan(done, group_bytes));
  }
}

}  // namespace bitnet::formats
