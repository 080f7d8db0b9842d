#include "model/architectures.hpp"

#include <algorithm>
#include <array>

#include "base/ascii.hpp"

namespace bitnet::model {
namespace {

// With a norm before the last product of each part of a layer, trained with rounded activations.
constexpr architecture bitnet_row(std::string_view name, gate_rule gate) {
  return {.name = name,
          .gate = gate,
          .rope_neox = true,
          .sub_norms = true,
          .head_norms = false,
          .trained_on_i8 = true};
}

constexpr std::array<architecture, 8> rows = {{
    // bitnet-b1.58 names two kinds, of which only those with SiLU have an SPM vocabulary.
    // docs/reference/models.md#gate
    bitnet_row("bitnet", gate_rule::silu),
    bitnet_row("bitnet25", gate_rule::relu2),
    bitnet_row("bitnetb158", gate_rule::of_vocabulary),
    bitnet_row("bitnet158", gate_rule::of_vocabulary),
    {.name = "llama",
     .gate = gate_rule::silu,
     .rope_neox = false,
     .sub_norms = false,
     .head_norms = false,
     .trained_on_i8 = false},
    {.name = "qwen3",
     .gate = gate_rule::silu,
     .rope_neox = true,
     .sub_norms = false,
     .head_norms = true,
     .trained_on_i8 = false},
    {.name = "gemma3",
     .gate = gate_rule::gelu,
     .rope_neox = true,
     .sub_norms = false,
     .head_norms = true,
     .trained_on_i8 = false,
     .gemma = true},
    {.name = "qwen35",
     .gate = gate_rule::silu,
     .rope_neox = true,
     .sub_norms = false,
     .head_norms = true,
     .trained_on_i8 = false,
     .hybrid = true},
}};

}  // namespace

const architecture* find_architecture(std::string_view spelled) {
  std::string plain;
  for (const char c : spelled)
    if (c != '-' && c != '_' && c != '.' && c != ' ') plain += lower_ascii(c);
  const auto* row = std::ranges::find(rows, plain, &architecture::name);
  return row == rows.end() ? nullptr : row;
}

std::string architecture_names() {
  return "bitnet, bitnet-25, bitnet-b1.58, llama, qwen3, gemma3 and qwen35";
}

}  // namespace bitnet::model
