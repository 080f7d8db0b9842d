#include "files/standard_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace bitnet::files {

bool open_standard_descriptors() {
  // In this order, since open() takes the lowest free number.
  constexpr std::array modes = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    int opened = ::open("/dev/null", modes[static_cast<unsigned>(fd)]);
    if (opened < 0) opened = ::open("/", O_RDONLY | O_DIRECTORY);  // if there is no /dev/null
    if (opened != fd) return false;
  }
  return true;
}

}  // namespace bitnet::files
