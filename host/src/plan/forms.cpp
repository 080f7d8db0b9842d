#include "plan/forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/kernel_aliases.hpp"
#include "text/items.hpp"

namespace bitnet::host::plans {
namespace {

// Best first, in the cpu backend's order. `in_ids`: text that ids contain after the last dot.
struct instruction_set {
  std::string_view name, in_ids;
};
constexpr auto instruction_sets = std::to_array<instruction_set>({
    {"amx", "amx"},
    {"avx512vnni", "avx512vnni"},
    {"avx512vnni", "avx512vbmi"},
    {"avx512", "avx512"},
    {"avxvnni", "avxvnni"},
    {"avx2", "avx2"},
    {"sse41", "sse41"},
    {"neon-i8mm", "neon_i8mm"},
    {"neon-i8mm", "neon-i8mm"},
    {"neon-dotprod", "neon_dotprod"},
    {"neon-dotprod", "neon-dotprod"},
    {"neon", "neon"},
    {"scalar", "scalar"},
});

std::string_view end_of(std::string_view id) {
  const std::size_t dot = id.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : id.substr(dot + 1);
}

// Index in the table; its size if there is none.
std::size_t rank_of(std::string_view id) {
  std::string_view end = end_of(id);
  if (const kernel_alias* alias = find_kernel_alias(id)) {
    constexpr std::string_view variable = "BITNET_CPU_ISA=";
    if (!alias->how.starts_with(variable)) return instruction_sets.size();
    end = alias->how.substr(variable.size());
  }
  const auto* const found = std::ranges::find_if(
      instruction_sets, [&](const instruction_set& one) { return end.contains(one.in_ids); });
  return static_cast<std::size_t>(found - instruction_sets.begin());
}

}  // namespace

const std::vector<form>& all_forms() {
  static const std::vector<form> rows = {
      {"cpu", "isa", "amx|avx512vnni|avx512|avxvnni|avx2|sse41|neon-i8mm|neon-dotprod|neon|scalar"},
      {"cuda", "warp_groups", "on|off"},
      {"vulkan", "subgroups", "0|1"},
      {"vulkan", "dot_product", "0|1"},
      {"webgpu", "subgroups", "0|1"},
      {"webgpu", "dot_product", "0|1"},
  };
  return rows;
}

std::string why_no_form(std::string_view text) {
  const std::size_t dot = text.find('.'), equals = text.find('=');
  if (dot == std::string_view::npos || equals == std::string_view::npos || equals < dot)
    return fmt::format("expected BACKEND.SETTING=VALUE for forms, found '{}'", text);
  const std::string_view backend = text.substr(0, dot), value = text.substr(equals + 1);
  const std::string_view setting = text.substr(dot + 1, equals - dot - 1);
  const auto found = std::ranges::find_if(all_forms(), [&](const form& one) {
    return one.backend == backend && one.setting == setting;
  });
  if (found == all_forms().end())
    return fmt::format("{}.{} is no setting that a plan may choose kernels by; {}", backend,
                       setting, forms_text(backend));
  const auto values = text::items(found->values, '|');
  if (std::ranges::find(values, value) == values.end())
    return fmt::format("expected one of {} for {}.{}, found '{}'", found->values, backend, setting,
                       value);
  return "";
}

std::string forms_text(std::string_view backend) {
  std::string known;
  for (const form& one : all_forms())
    if (one.backend == backend)
      known += fmt::format("{}{}.{}", known.empty() ? "" : ", ", one.backend, one.setting);
  if (known.empty())
    return fmt::format("backend {} has no named forms of kernels: it chooses them itself", backend);
  return fmt::format("backend {} has named forms for all its kernels together: {}", backend, known);
}

std::string isa_of(const part& on) {
  if (on.backend != "cpu") return "";
  std::size_t best = instruction_sets.size();
  for (const row& one : on.rows)
    for (const auto* ids : {&one.token, &one.prompt})
      for (const std::string& id : *ids) best = std::min(best, rank_of(id));
  return best == instruction_sets.size() ? "" : std::string(instruction_sets[best].name);
}

}  // namespace bitnet::host::plans
