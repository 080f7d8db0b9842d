#include "model/architectures.hpp"

#include <algorithm>
#include <array>

#include "base/ascii.hpp"

namespace bitnet::model {
namespace {

constexpr std::array<architecture, 6> rows = {{
    // bitnet-b1.58 names two kinds, of which only those with SiLU have an SPM vocabulary.
    // docs/reference/models.md#gate
    {.name = "bitnet",
     .gate = gate_rule::silu,
     .rope_neox = true,
     .sub_norms = true,
     .head_norms = false,
     .trained_on_i8 = true},
    {.name = "bitnet25",
     .gate = gate_rule::relu2,
     .rope_neox = true,
     .sub_norms = true,
     .head_norms = false,
     .trained_on_i8 = true},
    {.name = "bitnetb158",
     .gate = gate_rule::of_vocabulary,
     .rope_neox = true,
     .sub_norms = true,
     .head_norms = false,
     .trained_on_i8 = true},
    {.name = "bitnet158",
     .gate = gate_rule::of_vocabulary,
     .rope_neox = true,
     .sub_norms = true,
     .head_norms = false,
     .trained_on_i8 = true},
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
  return "bitnet, bitnet-25, bitnet-b1.58, llama and qwen3";
}

}  // namespace bitnet::model
