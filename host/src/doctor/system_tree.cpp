#include "doctor/system_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "files/descriptor.hpp"
#include "text/items.hpp"
#include "text/printable.hpp"

namespace bitnet::host::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_value = 256;  // bytes of a line that is shown

bool is_regular(const struct stat& facts) {
  return S_ISREG(facts.st_mode);
}

}  // namespace

std::optional<std::string> system_tree::text(const fs::path& path) const {
  const fs::path file = whole(path);
  struct stat facts{};
  // Check the kind before opening, since opening a device may have effects.
  if (stat(file.c_str(), &facts) != 0 || !is_regular(facts)) return std::nullopt;
  const files::descriptor in(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!in || fstat(in.get(), &facts) != 0 || !is_regular(facts)) return std::nullopt;
  std::string out;
  std::array<char, 4096> part{};
  while (out.size() < longest_text) {
    const ssize_t got = read(in.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && out.empty()) return std::nullopt;
    if (got <= 0) break;
    out.append(part.data(), static_cast<std::size_t>(got));
  }
  out.resize(std::min(out.size(), longest_text));
  return out;
}

std::string system_tree::line(const fs::path& path) const {
  const auto all = text(path);
  if (!all) return "";
  const std::string_view first = std::string_view(*all).substr(0, all->find('\n'));
  return text::printable(text::without_blanks_around(first), longest_value);
}

std::optional<uint64_t> system_tree::number(const fs::path& path) const {
  const auto all = text(path);
  if (!all) return std::nullopt;
  const auto words = words_of(*all);
  return words.empty() ? std::nullopt : number_of(words.front());
}

std::vector<std::string> system_tree::names(const fs::path& folder) const {
  std::vector<std::string> out;
  std::error_code ignored;
  for (fs::directory_iterator at(whole(folder), ignored), end;
       !ignored && at != end && out.size() < most_names; at.increment(ignored))
    out.push_back(at->path().filename().string());
  std::ranges::sort(out);
  return out;
}

std::string system_tree::link_end(const fs::path& path) const {
  std::error_code error;
  const fs::path to = fs::read_symlink(whole(path), error);
  return error ? "" : text::printable(to.filename().string(), longest_value);
}

bool system_tree::exists(const fs::path& path) const {
  std::error_code ignored;
  return fs::exists(whole(path), ignored);
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::optional<std::string_view> field_of(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (text::without_blanks_around(line.substr(0, colon)) == name)
      return text::without_blanks_around(line.substr(colon + 1));
  }
  return std::nullopt;
}

std::optional<uint64_t> count_in(std::string_view list) {
  uint64_t out = 0;
  for (const std::string_view item : text::items(list)) {
    const auto dash = item.find('-');
    const auto first = number_of(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(item.substr(dash + 1));
    constexpr uint64_t most = 1U << 20U;  // far more processors than Linux supports
    if (!first || !last || *first > *last || *last >= most || out > most) return std::nullopt;
    out += *last - *first + 1;
  }
  return out;
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  std::vector<std::string_view> out;
  for (std::size_t at = text.find_first_not_of(blank); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blank, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blank, end);
  }
  return out;
}

}  // namespace bitnet::host::doctor
