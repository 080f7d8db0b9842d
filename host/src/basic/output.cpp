#include "basic/output.hpp"
#include "system/limits.hpp"

#include <fmt/core.h>

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace bitnet::host {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // another process made it non-blocking
      pollfd room{fd, POLLOUT, 0};
      (void)::poll(&room, 1, -1);
      continue;
    }
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

result<void> print(std::string_view text) {
  if (write_all(STDOUT_FILENO, text)) return {};
  if (errno == EPIPE) return fail(exit_code::failure, "");
  return fail(exit_code::failure,
              fmt::format("cannot write to standard output: {}", limits::reason(errno)));
}

}  // namespace bitnet::host
