#include "plugin/loading/mapped_files.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace bitnet::plugin {
namespace {

// Removes a number and the required character behind it from the front of `text`; returns the
// number.
std::optional<uint64_t> take_number(std::string_view& text, int base, char after) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data() + text.size() || *end != after)
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return value;
}

// Parses "7f0e-7f10 r-xp 00002000 103:02 1185  /usr/lib/x.so (deleted)".
std::optional<mapped_file> parse_line(std::string_view line) {
  mapped_file out;
  const auto begin = take_number(line, 16, '-');
  const auto end = begin ? take_number(line, 16, ' ') : std::nullopt;
  const auto after_mode = line.find(' ');
  if (!end || after_mode == std::string_view::npos) return std::nullopt;
  line.remove_prefix(after_mode + 1);
  const auto offset = take_number(line, 16, ' ');
  const auto major = offset ? take_number(line, 16, ':') : std::nullopt;
  const auto minor = major ? take_number(line, 16, ' ') : std::nullopt;
  const auto inode = minor ? take_number(line, 10, ' ') : std::nullopt;
  if (!inode || *inode == 0) return std::nullopt;
  const auto path = line.find_first_not_of(' ');
  if (path != std::string_view::npos) line.remove_prefix(path);
  constexpr std::string_view gone = " (deleted)";
  if (line.ends_with(gone)) {
    out.deleted = true;
    line.remove_suffix(gone.size());
  }
  out.begin = *begin;
  out.end = *end;
  out.identity = {*major << 32 | (*minor & UINT32_MAX), *inode};
  out.path = path == std::string_view::npos ? std::string() : std::string(line);
  return out;
}

}  // namespace

std::vector<mapped_file> parse_maps(std::string_view text) {
  std::vector<mapped_file> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto one = parse_line(text.substr(0, end))) out.push_back(std::move(*one));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<mapped_file> mapped_files() {
  std::ifstream in("/proc/self/maps");
  return parse_maps(std::string{std::istreambuf_iterator<char>(in), {}});
}

std::optional<mapped_identity> mapped_at(uint64_t address) {
  for (const mapped_file& f : mapped_files())
    if (f.begin <= address && address < f.end) return f.identity;
  return std::nullopt;
}

std::optional<mapped_identity> identity_when_mapped(int fd) {
  void* const page = ::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, fd, 0);
  if (page == MAP_FAILED) return std::nullopt;
  const auto out = mapped_at(reinterpret_cast<uintptr_t>(page));
  ::munmap(page, 1);
  return out;
}

bool is_mapped(const mapped_identity& file) {
  return std::ranges::any_of(mapped_files(),
                             [&](const mapped_file& f) { return f.identity == file; });
}

}  // namespace bitnet::plugin
