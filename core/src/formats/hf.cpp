// Weights of Hugging Face checkpoints: four rows per byte with a separate scale, or the
// floating-point weights of the training.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/floats.hpp"
#include "formats/fit.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

// Byte [r][c] of m / 4 rows holds row r + i m / 4 in bits 2 i.
void packed_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const uint64_t quarter = from.m / 4;
  row = stored_row(from, row);
  const auto packed = from.bytes.subspan(row % quarter * from.k, from.k);
  for (uint64_t j = 0; j < out.size(); ++j) {
    const auto byte = std::to_integer<uint32_t>(packed[stored_column(from, column + j)]);
    out[j] = static_cast<uint8_t>(byte >> 2 * (row / quarter) & 3U);
  }
}

template <class Visit>
void for_each_real(const source& from, const Visit& visit) {
  const uint64_t n = from.k * from.m;
  for (uint64_t i = 0; i < n; ++i) visit(i, real_element(from.type, from.bytes, i));
}

// Visits the elements in the result's order; stored_row() explains the difference.
template <class Visit>
void for_each_stored(const source& from, const Visit& visit) {
  for (uint64_t r = 0; r < from.m; ++r) {
    const uint64_t start = stored_row(from, r) * from.k;
    for (uint64_t c = 0; c < from.k; ++c)
      visit(r * from.k + c, real_element(from.type, from.bytes, start + stored_column(from, c)));
  }
}

struct survey {
  double sum = 0;        // of |w|
  float largest = 0;     // |w|
  bool one_size = true;  // all |w| except 0 are equal
  std::optional<fit::misfit> not_finite;

  void add(uint64_t i, float x) {
    const float size = std::fabs(x);
    if (!std::isfinite(x) && !not_finite) not_finite = fit::misfit{i, x};
    one_size = one_size && (size == 0 || largest == 0 || size == largest);
    largest = std::max(largest, size);
    sum += size;
  }
};

survey look(const source& from) {
  survey s;
  for_each_real(from, [&](uint64_t i, float x) { s.add(i, x); });
  return s;
}

codes_of by_product(float inverse) {
  return [inverse](const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
    const uint64_t start = stored_row(from, row) * from.k;
    for (uint64_t j = 0; j < out.size(); ++j) {
      // Rounds half to even, so 0.5 to 0; values above 1 are clamped.
      const uint64_t at = start + stored_column(from, column + j);
      const float x = real_element(from.type, from.bytes, at) * inverse;
      out[j] = static_cast<uint8_t>(1 + static_cast<int>(x > 0.5F) - static_cast<int>(x < -0.5F));
    }
  };
}

void by_sign(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const uint64_t start = stored_row(from, row) * from.k;
  for (uint64_t j = 0; j < out.size(); ++j) {
    const float x = real_element(from.type, from.bytes, start + stored_column(from, column + j));
    out[j] = static_cast<uint8_t>(1 + static_cast<int>(x > 0) - static_cast<int>(x < 0));
  }
}

// Rounds half to even, so 0.5 to 0.
codes_of by_group(uint64_t elements, std::vector<float> scales) {
  return [elements, scales = std::move(scales)](const source& from, uint64_t row, uint64_t column,
                                                std::span<uint8_t> out) {
    const uint64_t start = stored_row(from, row) * from.k;
    for (uint64_t j = 0; j < out.size(); ++j) {
      const float x = real_element(from.type, from.bytes, start + stored_column(from, column + j));
      const float half = scales[(row * from.k + column + j) / elements] / 2;
      out[j] = static_cast<uint8_t>(1 + static_cast<int>(x > half) - static_cast<int>(x < -half));
    }
  };
}

}  // namespace

result<reading> ternarise(const source& from, rounding rule) {
  const survey s = look(from);
  if (s.not_finite) return std::unexpected(judge({s.not_finite}, "", 0, from.k).error());
  if (rule == rounding::exact_or_absmean && s.one_size)
    return ternary_reading(from, by_sign, 0, {s.largest},
                           "weights that are ternary already: all but zeros are of one size");
  const auto n = static_cast<double>(from.k * from.m);
  const float inverse = 1 / std::max(static_cast<float>(s.sum / n), 1e-5F);
  // Training rounds master weights this way. Other weights must not silently become all zeros.
  if (rule == rounding::exact_or_absmean && s.largest * inverse <= 0.5F)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("has no weight above {}, and the mean size that makes weights ternary is "
                    "at least 1e-05: all would become 0; choose f32 or bf16",
                    s.largest));
  return ternary_reading(from, by_product(inverse), 0, {1 / inverse},
                         "floating-point weights, made ternary by their mean size");
}

result<reading> ternarise_groups(const source& from, uint64_t elements) {
  if (from.k % elements != 0)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("has rows of {} elements; a scale for {} needs a multiple of that: "
                            "choose another type",
                            from.k, elements));
  if (const survey whole = look(from); whole.not_finite || whole.one_size)
    return ternarise(from, rounding::exact_or_absmean);
  std::vector<float> scales;
  scales.reserve(from.k * from.m / elements);
  bool exact = true;
  survey s;
  for_each_stored(from, [&](uint64_t i, float x) {
    s.add(i, x);
    if (i % elements != elements - 1) return;
    // Smaller magnitudes lose bits in f16, and their mean serves as well.
    constexpr float least_exact = 0x1p-14F;
    const auto mean = static_cast<float>(s.sum / static_cast<double>(elements));
    scales.push_back(s.one_size && s.largest >= least_exact ? s.largest : from_f16(to_f16(mean)));
    exact = exact && s.one_size && (s.largest == 0 || s.largest >= least_exact);
    s = {};
  });
  const auto large = std::ranges::find_if_not(scales, [](float d) { return std::isfinite(d); });
  if (std::ranges::all_of(scales, [](float d) { return d == 0; }))
    return fail(BITNET_UNSUPPORTED,
                "has weights whose mean size is less than 16 bits hold, so that all would become "
                "0; choose f32 or bf16");
  if (large != scales.end())
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("has weights whose mean size is more than 16 bits hold, from element {} "
                    "on; choose i2_s",
                    static_cast<uint64_t>(large - scales.begin()) * elements));
  return ternary_reading(
      from, by_group(elements, scales), elements, scales,
      exact ? fmt::format("weights that are ternary already: in each {} all but zeros are of one "
                          "size",
                          elements)
            : fmt::format("floating-point weights, made ternary by the mean size of each {}",
                          elements));
}

std::optional<uint64_t> ternary_already(const source& from) {
  struct candidate {
    uint64_t elements;
    bool holds;
    survey s{};
  };
  std::array all = {candidate{0, true}, candidate{128, from.k % 128 == 0},
                    candidate{64, from.k % 64 == 0}};
  for (uint64_t r = 0; r < from.m; ++r) {
    const uint64_t start = stored_row(from, r) * from.k;
    for (uint64_t c = 0; c < from.k; ++c) {
      const float x = real_element(from.type, from.bytes, start + stored_column(from, c));
      for (candidate& one : all) {
        if (one.elements != 0 && c % one.elements == 0) one.s = {};
        one.s.add(c, x);
        one.holds = one.holds && one.s.one_size;
      }
    }
    // Weights without a common magnitude are known after their first row.
    if (std::ranges::none_of(all, &candidate::holds)) return std::nullopt;
  }
  return std::ranges::find_if(all, &candidate::holds)->elements;
}

result<reading> understand_hf_master(const source& from) {
  source plain = from;
  plain.type = from.type == gguf::type::hf_master_f32   ? gguf::type::f32
               : from.type == gguf::type::hf_master_f16 ? gguf::type::f16
                                                        : gguf::type::bf16;
  auto to = ternarise(plain, rounding::absmean);
  if (!to) return to;
  to->codes = [codes = std::move(to->codes), type = plain.type](
                  const source& whole, uint64_t row, uint64_t column, std::span<uint8_t> out) {
    source of_plain = whole;
    of_plain.type = type;
    codes(of_plain, row, column, out);
  };
  to->how = "master weights of linear_class autobitlinear, online: made ternary by their mean size";
  return to;
}

result<reading> understand_hf_packed(const source& from) {
  if (from.m % 4 != 0)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("packed weights of {} rows; expected a multiple of 4", from.m));
  const uint64_t packed_bytes = from.k * from.m / 4;
  if (from.bytes.size() != packed_bytes)
    return fail(BITNET_BAD_DATA, fmt::format("packed weights of {} x {} take {} bytes, found {}",
                                             from.m, from.k, packed_bytes, from.bytes.size()));
  if (from.scales.elements != 1)
    return fail(BITNET_BAD_DATA,
                fmt::format("packed weights need one number in their weight_scale, found {}",
                            from.scales.elements));
  if (has_code_3(from.bytes))
    return fail(BITNET_BAD_DATA,
                "packed weights hold the code 3, which stands for no ternary value; the file is "
                "damaged");
  const bool divides = from.type == gguf::type::hf_packed_inverse;
  const float given = real_element(from.scales.type, from.scales.bytes, 0);
  const float scale = divides ? 1 / given : given;
  if (!std::isfinite(scale) || scale <= 0)
    return fail(
        BITNET_BAD_DATA,
        fmt::format("weight_scale is {}; it and its inverse must be finite numbers above zero; "
                    "the file is damaged",
                    given));
  // A mean of weights is well below 1, its inverse well above 5.
  // docs/reference/weights.md#checkpoints
  constexpr float most_mean = 5;
  if (scale > most_mean)
    return fail(BITNET_BAD_DATA,
                fmt::format("weight_scale is {}, which {} weights: such a scale belongs to the "
                            "other linear_class; mend quantization_config in config.json",
                            given,
                            divides ? "divides (linear_class bitlinear)"
                                    : "multiplies (linear_class autobitlinear)"));
  return ternary_reading(from, packed_codes, 0, {scale},
                         fmt::format("packed weights of linear_class {}",
                                     divides ? "bitlinear: the scale divides"
                                             : "autobitlinear: the scale multiplies"));
}

}  // namespace bitnet::formats
