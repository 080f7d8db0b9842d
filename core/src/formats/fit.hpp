#pragma once
// Checks whether numbers fit the type in which they are written.
//
// Fits     Every number is finite before and after, and the tensor's relative loss (root of mean
//          squares) is at most what the type's rounding takes (dense_target::most_error). So a
//          number that is too large is found at its element, numbers that underflow at the tensor.
// Errors   BITNET_BAD_DATA for NaN and infinity, BITNET_UNSUPPORTED for numbers out of the type's
//          range. Messages name the element; the caller adds the tensor.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "formats/writing.hpp"

namespace bitnet::formats {

// The check of all or a part of a tensor's numbers.
struct fit {
  struct misfit {
    uint64_t element = 0;  // of the tensor
    float number = 0;      // not finite: the source's fault; finite: too large for the type
  };
  std::optional<misfit> first;
  double lost = 0, size = 0;  // sums of squares

  void join(const fit& later);
  // The loss relative to the size; the absolute loss if the size is 0.
  [[nodiscard]] double error() const;
};

// Writes `numbers`, whole blocks, as `to`; `first` is the index of the first one in its tensor. If
// one is not finite, `out` is unchanged.
fit write_and_check(const dense_target& to, std::span<const float> numbers, uint64_t first,
                    std::span<std::byte> out);

// The same check without output.
fit try_out(const dense_target& to, std::span<const float> numbers, uint64_t first);

// Checks bytes [first, first + n) of a tensor that is copied as F32, F16 or BF16. In other types
// only scales can be not finite; reading checks those.
fit check_copied(uint32_t type, std::span<const std::byte> all, uint64_t first, uint64_t n);

// Whether a tensor with rows of k elements fits; `name`: the type's, for messages.
result<void> judge(const fit& all, std::string_view name, double most_error, uint64_t k);

}  // namespace bitnet::formats
