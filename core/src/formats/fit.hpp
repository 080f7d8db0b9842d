#pragma once
// Whether numbers fit the type that they are written in.
//
// Fits     every number is finite, before and after; and all of a tensor, by the root of their mean
//          squares, lose no larger share of their size than the type's rounding takes
//          (dense_target::most_error). So what is too large is found at its element, and what is
//          too small for any bit to remain by the tensor.
// Errors   BITNET_BAD_DATA for numbers that are none, BITNET_UNSUPPORTED for those that the type
//          has no room for. Messages name the element; the caller adds the tensor.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "formats/writing.hpp"

namespace bitnet::formats {

// What became of numbers, all or a part of a tensor's.
struct fit {
  struct misfit {
    uint64_t element = 0;  // of the tensor
    float number = 0;      // not finite: the source's fault; else: too large
  };
  std::optional<misfit> first;
  double lost = 0, size = 0;  // sums of squares

  void join(const fit& later);
  // Of the size; the whole loss where the size is 0.
  [[nodiscard]] double error() const;
};

// `to` of `numbers`, whole blocks, of which the first is element `first` of its tensor. Where one
// is not finite, `out` is left as it is.
fit write_and_check(const dense_target& to, std::span<const float> numbers, uint64_t first,
                    std::span<std::byte> out);

// What `to` would make of them.
fit try_out(const dense_target& to, std::span<const float> numbers, uint64_t first);

// Of the bytes [first, first + n) of a tensor that are copied: of F32, F16 and BF16; other types
// have none that is not finite but their scales, which are checked when they are read.
fit check_copied(uint32_t type, std::span<const std::byte> all, uint64_t first, uint64_t n);

// Whether all of a tensor of rows of k elements fits; `name` is the type's.
result<void> judge(const fit& all, std::string_view name, double most_error, uint64_t k);

}  // namespace bitnet::formats
