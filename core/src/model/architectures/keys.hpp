#pragma once
// The keys of a file under the name of its architecture.

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
    (int64_t{1} << 23) - 1;  // int8 products that an int32 sum can hold

// What a count must lie between, and why it may not be more.
struct range {
  int64_t least, most;
  std::string_view because;
};
inline constexpr range contexts{1, exact_in_float, "positions beyond it are not exact in float32"};
inline constexpr range widths{1, exact_in_sum, "longer rows could overflow an int32 sum"};
inline constexpr range counts{1, 65535, "no model comes near"};

// Reads <architecture>.<name> keys; after the first failure every answer is a zero or a default.
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
  // A truth for each of n layers; nullopt: the key is no array of them.
  std::optional<std::vector<bool>> truths(std::string_view key, uint32_t n);
  // A finite number above zero, if the key is there.
  std::optional<float> optional_positive(std::string_view key);
  float positive(std::string_view key);
  std::string text(std::string_view key);

  // Keeps the first failure; answers what a reader answers after one.
  uint32_t stop(std::string message, bitnet_status status = BITNET_BAD_DATA) {
    return stop(failure{status, std::move(message)});
  }
  uint32_t stop(failure why) {
    if (!failure_) failure_ = std::move(why);
    return 0;
  }

  // Says that a key which no other architecture computes is computed by this one.
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
