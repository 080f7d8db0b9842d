#include "gguf/stand_in.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "text/ascii.hpp"

namespace bitnet::gguf {
namespace {

constexpr size_t longest_pointer = 1024;  // the limit of Git LFS

std::optional<uint64_t> size_in(std::string_view pointer) {
  constexpr std::string_view key = "\nsize ";
  const size_t at = pointer.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const first = pointer.data() + at + key.size();
  uint64_t size = 0;
  if (std::from_chars(first, pointer.data() + pointer.size(), size).ec != std::errc())
    return std::nullopt;
  return size;
}

bool is_page(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const std::string beginning = lower_ascii(std::string(text.substr(first, 9)));
  return beginning == "<!doctype" || beginning.starts_with("<html");
}

}  // namespace

std::string stand_in(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min(bytes.size(), longest_pointer));
  if (text.starts_with("version https://git-lfs.github.com/spec/")) {
    const auto size = size_in(text);
    return fmt::format(
        "is a pointer of Git LFS{}; run `git lfs pull` in its folder, or download "
        "the file itself",
        size ? fmt::format(" to a file of {} bytes", *size) : std::string());
  }
  if (is_page(text)) return "is a web page; download the file itself, not the page that shows it";
  return "";
}

}  // namespace bitnet::gguf
