#include "plugin/analysis/symbol_groups.hpp"

#include <algorithm>

#include "plugin/codes/text.hpp"
#include "text/ascii.hpp"

namespace bitnet::plugin {
namespace {

constexpr std::size_t longest_name = 512;  // bytes shown of a name

// Ternary and binary formats, and formats of llama.cpp that such libraries contain, too.
constexpr auto format_names = std::to_array<std::string_view>(
    {"bf16", "f16",  "i2_s", "iq1_bn", "iq2_bn", "pq2_0", "ptq1_0", "q1_0",
     "q2_0", "q2_k", "q3_k", "q4_0",   "q4_1",   "q4_k",  "q5_0",   "q5_1",
     "q5_k", "q6_k", "q8_0", "q8_k",   "tl1",    "tl2",   "tq1_0",  "tq2_0"});

// Only functions with one of these words have the format they compute in their name.
constexpr auto format_words = std::to_array<std::string_view>(
    {"quant", "vec_dot", "mul_mat", "matmul", "gemm", "gemv", "pack"});

bool contains_one_of(std::string_view name, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Whether the name contains the format as a whole word: "tq1_0" does not contain "q1_0". A mangled
// name has the word's length before it and types behind it.
bool has_format(std::string_view name, std::string_view format, bool is_mangled) {
  for (std::size_t at = name.find(format); at != std::string_view::npos;
       at = name.find(format, at + 1)) {
    const char before = at == 0 ? '_' : name[at - 1];
    const std::size_t end = at + format.size();
    const char after = end == name.size() ? '_' : name[end];
    if (is_letter(before) || (is_digit(before) && !is_mangled)) continue;
    if (is_digit(after) || (is_letter(after) && !is_mangled)) continue;
    return true;
  }
  return false;
}

}  // namespace

symbol_group group_of(std::string_view name) {
  constexpr auto of_quantization = std::to_array<std::string_view>({"quants", "i2_s"});
  if (name.starts_with("bitnet_")) return symbol_group::bitnet;
  if (name.starts_with("llama_")) return symbol_group::llama;
  if (contains_one_of(name, foreign_names::accelerator_words)) return symbol_group::accelerator;
  if (contains_one_of(name, of_quantization)) return symbol_group::quantization;
  return symbol_group::none;
}

std::array<grouped_symbols, n_symbol_groups> group_symbols(std::span<const named_symbol> names,
                                                           uint64_t most_names) {
  std::array<grouped_symbols, n_symbol_groups> out;
  for (const named_symbol& one : names) {
    const symbol_group group = group_of(one.name);
    if (group == symbol_group::none) continue;
    grouped_symbols& to = out[static_cast<std::size_t>(group)];
    ++to.count;
    to.defined += one.defined ? 1 : 0;
    if (to.names.size() < most_names) to.names.push_back(printable(one.name, longest_name));
  }
  return out;
}

std::vector<std::string> formats_in(std::span<const named_symbol> names) {
  std::array<bool, format_names.size()> seen{};
  for (const named_symbol& one : names) {
    const std::string name = lower_ascii(std::string(one.name.substr(0, longest_name)));
    const bool is_i2s = name.find("i2_s") != std::string::npos;
    if (!is_i2s && !contains_one_of(name, format_words)) continue;
    const bool is_mangled = name.starts_with("_z");
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (!seen[i]) seen[i] = has_format(name, format_names[i], is_mangled);
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i]) out.emplace_back(format_names[i]);
  return out;
}

}  // namespace bitnet::plugin
