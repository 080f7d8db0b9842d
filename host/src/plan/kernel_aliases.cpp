#include "plan/kernel_aliases.hpp"

#include <algorithm>
#include <iterator>

namespace bitnet::host {
namespace {

constexpr std::string_view ternary = "linear_ternary.ternary2";
constexpr std::string_view no_iq2s =
    "bitnet does not read weights of type IQ2_S, so that it has no kernel for them";

constexpr kernel_alias alias_rows[] = {
    {"I2S_QK256_Scalar", ternary, "scalar", "BITNET_CPU_ISA=scalar", ""},
    {"I2S_QK256_AVX2", ternary, "avx2 avxvnni", "BITNET_CPU_ISA=avx2", ""},
    {"I2S_QK256_AVX512", ternary, "avx512 amx", "BITNET_CPU_ISA=avx512", ""},
    {"I2S_QK256_NEON", ternary, "neon", "BITNET_CPU_ISA=neon", ""},
    {"I2S_QK256_CUDA", ternary, "cuda", "--device cuda", ""},
    {"TL1_ARM_NEON", ternary, "neon", "BITNET_CPU_ISA=neon", ""},
    {"TL1_X86_AVX2", ternary, "avx2 avxvnni", "BITNET_CPU_ISA=avx2", ""},
    {"TL1_X86_AVX512", ternary, "avx512 amx", "BITNET_CPU_ISA=avx512", ""},
    {"TL2_X86_AVX512", ternary, "avx512 amx", "BITNET_CPU_ISA=avx512", ""},
    {"IQ2S_GGML_CPU", "", "", "", no_iq2s},
    {"IQ2S_GGML_CUDA", "", "", "", no_iq2s},
    {"Llama_CPU", "", "", "",
     "it is all of a backend and no kernel; `bitnet bench --device cpu` measures a model on it"},
    {"Llama_CUDA", "", "", "",
     "it is all of a backend and no kernel; `bitnet bench --device cuda` measures a model on it"},
};

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

const kernel_alias* find_kernel_alias(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      alias_rows, [&](const kernel_alias& a) { return same_letters(a.name, name); });
  return found == std::end(alias_rows) ? nullptr : found;
}

bool names(const kernel_alias& alias, std::string_view kernel_id) {
  const std::size_t dot = kernel_id.rfind('.');
  if (alias.stem.empty() || dot == std::string_view::npos || kernel_id.substr(0, dot) != alias.stem)
    return false;
  for (std::string_view rest = alias.ends; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (kernel_id.substr(dot + 1).starts_with(rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::vector<std::string> aliases_of(std::string_view kernel_id) {
  std::vector<std::string> out;
  for (const kernel_alias& a : alias_rows)
    if (names(a, kernel_id)) out.emplace_back(a.name);
  return out;
}

}  // namespace bitnet::host
