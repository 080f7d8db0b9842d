#pragma once
// Reads the keys of a file that begin with the name of its architecture.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gguf/container.hpp"

namespace bitnet::model {

inline constexpr int64_t exact_in_float = int64_t{1} << 24;  // positions are multiplied as float32
inline constexpr int64_t exact_in_sum =
    (int64_t{1} << 23) - 1;  // an int32 sum can hold this many int8 products

// The bounds of a count, and the reason for the upper one.
struct range {
  int64_t least, most;
  std::string_view because;
};
inline constexpr range contexts{1, exact_in_float, "positions beyond it are not exact in float32"};
inline constexpr range widths{1, exact_in_sum, "longer rows could overflow an int32 sum"};
inline constexpr range counts{1, 65535, "no model comes near"};

// Reads <architecture>.<name> keys; after the first failure all reads return zero or the default.
class keys {
 public:
  keys(const gguf::container& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  [[nodiscard]] result<void> outcome() const {
    if (failure_) return std::unexpected(*failure_);
    return {};
  }
  [[nodiscard]] std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  [[nodiscard]] bool has(std::string_view key) const {
    return metadata_.find(name(key)) != nullptr;
  }
  [[nodiscard]] bool is_zero(std::string_view key) const;

  uint32_t count(std::string_view key, const range& within);
  uint32_t optional_count(std::string_view key, const range& within, uint32_t otherwise);
  // One bool per layer; nullopt: the key is no array of them.
  std::optional<std::vector<bool>> truths(std::string_view key, uint32_t n);
  // A finite number above zero, if the key is there.
  std::optional<float> optional_positive(std::string_view key);
  float positive(std::string_view key);
  std::string text(std::string_view key);

  // Keeps the first failure; returns the value that reads return after one.
  uint32_t stop(std::string message, bitnet_status status = BITNET_BAD_DATA) {
    return stop(failure{status, std::move(message)});
  }
  uint32_t stop(failure why) {
    if (!failure_) failure_ = std::move(why);
    return 0;
  }

  // Notes that this architecture supports a key that others do not.
  void computes(std::string_view key) { computed_.emplace(key); }
  [[nodiscard]] bool is_computed(std::string_view key) const { return computed_.contains(key); }

 private:
  uint32_t missing(std::string_view key);

  const gguf::container& metadata_;
  std::string prefix_;
  std::optional<failure> failure_;
  std::set<std::string, std::less<>> computed_;
};

}  // namespace bitnet::model
