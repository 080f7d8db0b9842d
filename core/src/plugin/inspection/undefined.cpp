#include "plugin/inspection/undefined.hpp"

#include <fmt/core.h>

#include <elf.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/library_search.hpp"
#include "plugin/inspection/system_file.hpp"

namespace bitnet::plugin {
namespace {

// Runtimes that a compiler links into programs and not into libraries.
constexpr auto instrumentation =
    std::to_array<std::string_view>({"__asan_", "__hwasan_", "__lsan_", "__msan_", "__sancov_",
                                     "__sanitizer_", "__tsan_", "__ubsan_"});

bool is_instrumentation(std::string_view name) {
  return std::ranges::any_of(instrumentation,
                             [&](std::string_view start) { return name.starts_with(start); });
}

// A weak symbol may stay undefined.
std::vector<std::string_view> wanted_by(const elf_image& image) {
  std::vector<std::string_view> out;
  const auto symbols = image.symbols();
  if (!symbols) return out;  // the check of exports reports it
  for (const elf_image::symbol& s : *symbols)
    if (!s.defined && s.binding == STB_GLOBAL) out.push_back(s.name);
  return out;
}

std::string some(const std::vector<std::string_view>& names) {
  constexpr std::size_t most = 5;
  std::vector<std::string> shown;
  for (const std::string_view name : names)
    if (shown.size() < most) shown.push_back(printable(name, 128));
  return join(shown, ", ") + (names.size() > most ? ", ..." : "");
}

}  // namespace

void examine_undefined(const elf_image& image, const std::vector<needed_library>& libraries,
                       findings& found) {
  constexpr const char* check = "symbols";
  std::vector<std::filesystem::path> scope;
  for (const needed_library& one : libraries) {
    if (one.file.empty() || one.fault) return;
    scope.push_back(one.file);
  }
  std::vector<std::string_view> left = wanted_by(image);
  const std::size_t wanted = left.size();
  for (std::size_t i = 0; i < scope.size() && !left.empty(); ++i) {
    const auto library = system_file::open(scope[i]);
    if (!library) continue;
    left = library->image().lacking(std::move(left));
    // The search does not follow libraries that are already in the process; what they need is
    // loaded, too.
    for (const std::string_view name : library->image().dynamic_strings(DT_NEEDED))
      if (const auto file = loaded_file(std::string(name));
          file && std::ranges::find(scope, *file) == scope.end())
        scope.push_back(*file);
  }
  std::vector<std::string_view> of_sanitizers;
  std::ranges::copy_if(left, std::back_inserter(of_sanitizers), is_instrumentation);
  std::erase_if(left, is_instrumentation);
  if (!left.empty())
    found.error(check, code::abi_load,
                fmt::format("no library that it needs defines {}", some(left)),
                "link the plugin with the library that defines it; the linker's option -z defs "
                "finds such symbols when it is built");
  else if (!of_sanitizers.empty())
    found.warning(
        check, code::abi_load,
        fmt::format("leaves {} to a program that a sanitizer was built into", some(of_sanitizers)),
        "not for a release");
  else
    found.ok(check, fmt::format("{}, all defined by what it needs", wanted));
}

}  // namespace bitnet::plugin
