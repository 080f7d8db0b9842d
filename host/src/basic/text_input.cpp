#include "basic/text_input.hpp"
#include "system/limits.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "text/incoming.hpp"

namespace bitnet::host {
namespace {

constexpr const char* standard_input = "standard input";

std::unexpected<read_failure> fail_with(int number, const std::string& name) {
  return std::unexpected(read_failure{number, fmt::format("{}: {}", name, limits::reason(number))});
}

std::expected<std::string, read_failure> read_all(int fd, const std::string& name, uint64_t limit) {
  std::string text;
  std::array<char, 16384> block;
  for (;;) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n < 0) return fail_with(errno, name);  // EINTR too: only Ctrl-C interrupts
    if (n == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
    if (text.size() > limit) return fail_with(EFBIG, name);
  }
}

std::expected<std::string, read_failure> as_text(std::expected<std::string, read_failure> bytes,
                                                 const std::string& name) {
  if (!bytes) return bytes;
  auto text = text::incoming(*std::move(bytes));
  if (!text)
    return std::unexpected(read_failure{EILSEQ, fmt::format("{}: {}", name, text.error())});
  return *std::move(text);
}

}  // namespace

std::expected<std::string, read_failure> read_file(const std::string& file, uint64_t limit) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_with(errno, file);
  auto text = read_all(fd, file, limit);
  ::close(fd);
  return text;
}

std::expected<std::string, read_failure> read_usual_file(const std::string& file, uint64_t limit) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return fail_with(errno, file);
  struct stat s{};
  std::expected<std::string, read_failure> text;
  if (::fstat(fd, &s) != 0)
    text = fail_with(errno, file);
  else if (!S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode))  // reading reports a directory
    text = std::unexpected(read_failure{EINVAL, file + ": is no regular file"});
  else
    text = read_all(fd, file, limit);
  ::close(fd);
  return text;
}

std::expected<std::string, read_failure> read_stdin(uint64_t limit) {
  return read_all(STDIN_FILENO, standard_input, limit);
}

std::expected<std::string, read_failure> read_text_file(const std::string& file, uint64_t limit) {
  return as_text(read_file(file, limit), file);
}

std::expected<std::string, read_failure> read_usual_text_file(const std::string& file,
                                                              uint64_t limit) {
  return as_text(read_usual_file(file, limit), file);
}

std::expected<std::string, read_failure> read_text_stdin(uint64_t limit) {
  return as_text(read_stdin(limit), standard_input);
}

std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[++i];
    switch (next) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '\\':
        out += '\\';
        break;
      case '\'':
        out += '\'';
        break;
      case '"':
        out += '"';
        break;
      case 'x': {
        unsigned byte = 0;
        const std::string_view digits = text.substr(i + 1, 2);
        const auto [rest, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
        if (error == std::errc{} && rest == digits.data() + 2) {
          out += static_cast<char>(byte);
          i += 2;
          break;
        }
        [[fallthrough]];
      }
      default:
        out += '\\';
        out += next;
    }
  }
  return out;
}

}  // namespace bitnet::host
