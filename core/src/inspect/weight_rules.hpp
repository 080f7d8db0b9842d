#pragma once
// Usual sizes of norms and linear layers in working models, from BitNet-rs's inspector. A root mean
// square outside is a sign of a wrong layout, a wrong scale or a bad conversion.
// Source  docs/reference/weight-checks.md

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "gguf/container.hpp"

namespace bitnet::inspect {

struct bounds {
  double lowest = 0, highest = 0;
};

// Bounds for norms whose name ends in `ending`, before ".weight"; the first matching row counts.
struct norm_rule {
  std::string_view ending;
  bounds rms;
};

struct rule_set {
  std::string_view name;  // "bitnet-b1.58:f16"
  std::span<const norm_rule> norms;
  std::optional<bounds> projection{};  // rms of linear layers in F32, F16 or BF16
};

// "auto": by general.architecture and general.file_type; "none"; "f16", "i2_s", "generic" or a
// set's full name. BITNET_INVALID_ARGUMENT for other words.
result<rule_set> choose_rules(std::string_view wanted, const gguf::container& metadata);

// For a norm such as "blk.3.attn_norm.weight": its bounds; nullopt if the set has no rule for it.
[[nodiscard]] bool is_norm(std::string_view tensor);
[[nodiscard]] std::optional<bounds> norm_bounds(const rule_set& rules, std::string_view tensor);
// "blk.3.ffn_down.weight"
[[nodiscard]] bool is_projection(std::string_view tensor);

}  // namespace bitnet::inspect
