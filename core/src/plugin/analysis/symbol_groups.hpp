#pragma once
// Classifies the names of a library's symbols: by the four groups of BitNet-rs's analyze-library,
// and by the weight formats that names mention.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/analysis/foreign_names.hpp"

namespace bitnet::plugin {

// In the order of the rules: the first matching rule decides.
enum class symbol_group : uint8_t {
  bitnet,        // begins with "bitnet_"
  llama,         // begins with "llama_"
  accelerator,   // contains one of foreign_names::accelerator_words
  quantization,  // contains "quants" or "i2_s"
  none,
};
inline constexpr std::size_t n_symbol_groups = 4;
inline constexpr std::array<std::string_view, n_symbol_groups> symbol_group_keys = {
    "bitnet", "llama", foreign_names::accelerator_group, "quantization"};

[[nodiscard]] symbol_group group_of(std::string_view name);

// A distinct name of one or both tables.
struct named_symbol {
  std::string_view name;
  bool defined = false;   // in at least one table
  bool exported = false;  // visible to other objects
};

struct grouped_symbols {
  uint64_t count = 0, defined = 0;
  std::vector<std::string> names{};  // the first ones, sorted by bytes; printable
};

// `names` is sorted. At most `most_names` names per group are listed.
[[nodiscard]] std::array<grouped_symbols, n_symbol_groups> group_symbols(
    std::span<const named_symbol> names, uint64_t most_names);

// The weight formats in names, such as "i2_s" of "quantize_i2_s", sorted.
[[nodiscard]] std::vector<std::string> formats_in(std::span<const named_symbol> names);

}  // namespace bitnet::plugin
