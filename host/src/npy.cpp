#include "npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "terminal/output.hpp"

namespace bitnet::host {

std::string npy_header(const std::vector<uint64_t>& shape) {
  constexpr char order = std::endian::native == std::endian::little ? '<' : '>';
  const char* const comma = shape.size() == 1 ? "," : "";  // Python's tuple of one
  std::string text = fmt::format("{{'descr': '{}f4', 'fortran_order': False, 'shape': ({}{}), }}",
                                 order, fmt::join(shape, ", "), comma);
  constexpr std::size_t before = 10;  // magic, version, length
  while ((before + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

result<npy_file> npy_file::create(const std::string& target, const std::vector<uint64_t>& shape) {
  int fd = STDOUT_FILENO;
  std::string temporary;
  if (target != "-") {
    temporary = target + ".XXXXXX";
    fd = ::mkstemp(temporary.data());
    if (fd < 0) {
      return fail(exit_code::failure, fmt::format("cannot write {}: {}", target,
                                                  std::generic_category().message(errno)));
    }
  }
  npy_file file(fd, target, temporary);
  if (!write_all(fd, npy_header(shape))) return file.broken("write");
  return file;
}

npy_file::npy_file(npy_file&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)) {}

npy_file::~npy_file() {
  if (fd_ < 0 || temporary_.empty()) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

std::unexpected<failure> npy_file::broken(const char* doing) const {
  if (errno == EPIPE) return fail(exit_code::failure, "");
  return fail(exit_code::failure,
              fmt::format("cannot {} {}: {}", doing, target_ == "-" ? "standard output" : target_,
                          std::generic_category().message(errno)));
}

result<void> npy_file::write(std::span<const float> values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  if (!write_all(fd_, bytes)) return broken("write");
  return {};
}

result<void> npy_file::commit() {
  if (temporary_.empty()) return {};
  // mkstemp's 0600 is for secrets; a result gets what the user's umask says.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd_, 0666 & ~mask) != 0) return broken("write");
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 || std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const auto why = broken("write");
    ::unlink(temporary_.c_str());
    return why;
  }
  return {};
}

}  // namespace bitnet::host
