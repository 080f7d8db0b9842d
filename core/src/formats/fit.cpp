#include "formats/fit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "formats/reading.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

std::optional<fit::misfit> not_finite(std::span<const float> numbers, uint64_t first) {
  const auto at = std::ranges::find_if_not(numbers, [](float x) { return std::isfinite(x); });
  if (at == numbers.end()) return std::nullopt;
  return fit::misfit{first + static_cast<uint64_t>(at - numbers.begin()), *at};
}

// A block's largest number decides its scale, so the largest one is the misfit.
fit::misfit largest_of_block(std::span<const float> numbers, uint64_t first, uint64_t at,
                             uint64_t block) {
  const auto all = numbers.subspan(at / block * block, block);
  const auto most = std::ranges::max_element(all, {}, [](float x) { return std::fabs(x); });
  return {first + at / block * block + static_cast<uint64_t>(most - all.begin()), *most};
}

// "element 5 (row 0, column 5)"
std::string place_of(uint64_t element, uint64_t k) {
  return fmt::format("element {} (row {}, column {})", element, element / k, element % k);
}

std::string number_text(float x) {
  if (std::isnan(x)) return "NaN";
  return fmt::format("{}", x);
}

}  // namespace

void fit::join(const fit& later) {
  if (!first) first = later.first;
  lost += later.lost;
  size += later.size;
}

double fit::error() const {
  return std::sqrt(size == 0 ? lost : lost / size);
}

fit write_and_check(const dense_target& to, std::span<const float> numbers, uint64_t first,
                    std::span<std::byte> out) {
  fit all;
  all.first = not_finite(numbers, first);
  if (all.first) return all;
  to.write(numbers, out);
  std::vector<float> back(numbers.size());
  read_dense(to.type, out, 0, back);
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(back[i]) && !all.first)
      all.first = largest_of_block(numbers, first, i, to.block);
    const double d = double{numbers[i]} - double{back[i]};
    all.lost += d * d;
    all.size += double{numbers[i]} * double{numbers[i]};
  }
  return all;
}

fit try_out(const dense_target& to, std::span<const float> numbers, uint64_t first) {
  const auto size = gguf::size_of(to.type).value_or(gguf::type_size{1, 1});
  std::vector<std::byte> out(numbers.size() / size.block * size.bytes);
  return write_and_check(to, numbers, first, out);
}

fit check_copied(uint32_t type, std::span<const std::byte> all, uint64_t first, uint64_t n) {
  fit out;
  if (type != gguf::type::f32 && type != gguf::type::f16 && type != gguf::type::bf16) return out;
  const uint64_t width = type == gguf::type::f32 ? 4 : 2;
  for (uint64_t i = first / width; i < (first + n) / width; ++i)
    if (const float x = real_element(type, all, i); !std::isfinite(x)) {
      out.first = fit::misfit{i, x};
      return out;
    }
  return out;
}

result<void> judge(const fit& all, std::string_view name, double most_error, uint64_t k) {
  if (all.first && !std::isfinite(all.first->number))
    return fail(BITNET_BAD_DATA,
                fmt::format("{} is {}, which is no weight; the file is damaged, or its training "
                            "failed",
                            place_of(all.first->element, k), number_text(all.first->number)));
  const std::string_view others = name == "bf16" ? "f32" : "f32 or bf16";
  if (all.first)
    return fail(BITNET_UNSUPPORTED, fmt::format("{} is {}, more than {} holds; choose {}",
                                                place_of(all.first->element, k),
                                                number_text(all.first->number), name, others));
  if (all.error() > most_error)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("holds numbers so small that {} loses {:.0f} % of their size; choose {}", name,
                    100 * all.error(), others));
  return {};
}

}  // namespace bitnet::formats
