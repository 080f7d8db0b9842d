#include "plugin/inspection/foreign.hpp"

#include <fmt/core.h>

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "plugin/codes/text.hpp"

namespace bitnet::plugin {
namespace {

// For these three tags glibc uses only the low 31 bits, so that other numbers mean them, too.
constexpr uint64_t low_bits = 0x7fffffff;
constexpr auto by_low_bits = std::to_array<std::pair<uint64_t, std::string_view>>({
    {DT_AUXILIARY, "DT_AUXILIARY"},
    {DT_FILTER, "DT_FILTER"},
    {0x7ffffffe, "DT_USED"},
});
constexpr auto by_tag = std::to_array<std::pair<int64_t, std::string_view>>({
    {DT_AUDIT, "DT_AUDIT"},
    {DT_DEPAUDIT, "DT_DEPAUDIT"},
    {DT_CONFIG, "DT_CONFIG"},
});

std::optional<std::string_view> redirection(int64_t tag) {
  for (const auto& [bits, name] : by_low_bits)
    if ((static_cast<uint64_t>(tag) & low_bits) == bits) return name;
  for (const auto& [value, name] : by_tag)
    if (tag == value) return name;
  return std::nullopt;
}

}  // namespace

std::string name_fault(std::string_view name) {
  if (name.empty()) return "has no name";
  if (name.find('/') != std::string_view::npos)
    return "is a path, which the linker opens without looking where libraries lie";
  if (name.find('$') != std::string_view::npos)
    return "has a '$', where the linker puts other text";
  // Like "7" in a run path of $ORIGIN: the folder of a plugin's descriptors has such files.
  if (std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; }))
    return "is a number, as descriptors are";
  if (printable(name) != name) return "is not plain text";
  return "";
}

std::vector<std::string> redirections(const elf_image& image) {
  std::vector<std::string> out;
  for (const Elf64_Dyn& entry : image.dynamic())
    if (const auto name = redirection(entry.d_tag);
        name && std::ranges::find(out, *name) == out.end())
      out.emplace_back(*name);
  return out;
}

void examine_foreign(const elf_image& image, findings& found) {
  constexpr const char* check = "foreign code";
  bool fine = true;
  if (const auto tags = redirections(image); !tags.empty()) {
    fine = false;
    found.error(
        check, code::inspect_foreign,
        fmt::format("has {}, by which the linker would load libraries that were not checked",
                    join(tags, " and ")));
  }
  for (const std::string_view name : image.dynamic_strings(DT_NEEDED)) {
    const std::string fault = name_fault(name);
    if (fault.empty()) continue;
    fine = false;
    found.error(check, code::inspect_foreign,
                fmt::format("needs '{}', which {}", printable(name), fault));
  }
  if (fine) found.ok(check, "libraries are needed by plain names only");
}

}  // namespace bitnet::plugin
