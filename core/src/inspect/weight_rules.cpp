#include "inspect/weight_rules.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "gguf/text.hpp"
#include "gguf/types.hpp"
#include "text/ascii.hpp"

namespace bitnet::inspect {
namespace {

constexpr std::string_view weight = ".weight";

// GGUF's names, and those of checkpoints, which BitNet-rs has in its rules.
constexpr auto norms_f16 = std::to_array<norm_rule>({
    {"ffn_sub_norm", {0.05, 2}},
    {"ffn_layernorm", {0.05, 2}},
    {"ffn_norm", {0.25, 2}},
    {"post_attention_layernorm", {0.25, 2}},
    {"attn_norm", {0.35, 2}},
    {"input_layernorm", {0.35, 2}},
    {"norm", {0.5, 2}},  // the final norm, and others
});
constexpr auto norms_i2s = std::to_array<norm_rule>({
    {"attn_norm", {0.01, 2}},
    {"ffn_norm", {0.5, 2}},
    {"output_norm", {0.5, 2}},
    {"final_norm", {0.5, 2}},
    {"final_layernorm", {0.5, 2}},
    {"norm", {0.25, 2}},
});
constexpr auto norms_generic = std::to_array<norm_rule>({{"norm", {0.8, 1.2}}});

constexpr auto sets = std::to_array<rule_set>({
    {"bitnet-b1.58:f16", norms_f16, bounds{0.01, 0.40}},
    {"bitnet-b1.58:i2_s", norms_i2s, bounds{0.002, 0.20}},
    {"generic", norms_generic, std::nullopt},
});
constexpr rule_set no_rules{"none", {}, std::nullopt};

// "attn_norm" of "blk.3.attn_norm.weight"; "" if it is no weight.
std::string_view part_of(std::string_view tensor) {
  if (!tensor.ends_with(weight)) return {};
  tensor.remove_suffix(weight.size());
  return tensor.substr(tensor.rfind('.') + 1);
}

const rule_set& rules_of(const gguf::container& metadata) {
  const auto spelled = metadata.text("general.architecture");
  const std::string name = lower_ascii(
      std::string(spelled ? spelled->value_or(std::string_view()) : std::string_view()));
  if (name.find("bitnet") == std::string::npos && name.find("b1.58") == std::string::npos)
    return sets[2];
  const auto type = metadata.integer("general.file_type");
  const int64_t of = type ? type->value_or(gguf::file_type::i2_s) : gguf::file_type::i2_s;
  const bool is_float =
      of == gguf::file_type::f32 || of == gguf::file_type::f16 || of == gguf::file_type::bf16;
  return is_float ? sets[0] : sets[1];
}

}  // namespace

result<rule_set> choose_rules(std::string_view wanted, const gguf::container& metadata) {
  if (wanted.empty() || wanted == "auto") return rules_of(metadata);
  if (wanted == no_rules.name) return no_rules;
  for (const rule_set& one : sets)
    if (wanted == one.name || one.name.ends_with(fmt::format(":{}", wanted))) return one;
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("there are no weight rules {}; expected auto, none, f16, i2_s or generic",
                          gguf::quote(wanted)));
}

bool is_norm(std::string_view tensor) {
  return part_of(tensor).ends_with("norm");
}

std::optional<bounds> norm_bounds(const rule_set& rules, std::string_view tensor) {
  for (const norm_rule& one : rules.norms)
    if (part_of(tensor).ends_with(one.ending)) return one.rms;
  return std::nullopt;
}

bool is_projection(std::string_view tensor) {
  constexpr auto parts = std::to_array<std::string_view>(
      {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down"});
  return std::ranges::find(parts, part_of(tensor)) != parts.end();
}

}  // namespace bitnet::inspect
