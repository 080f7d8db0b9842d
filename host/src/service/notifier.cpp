#include "service/notifier.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>

#include "files/descriptor.hpp"

namespace bitnet::host {
namespace {

std::optional<int64_t> number_of(const std::string& text) {
  int64_t out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size())
    return std::nullopt;
  return out;
}

}  // namespace

bool service_notifier::send(std::string_view state) const {
  sockaddr_un at{};
  if (socket_.size() < 2 || socket_.size() >= sizeof at.sun_path) return false;
  if (socket_[0] != '/' && socket_[0] != '@') return false;
  const files::descriptor from(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!from) return false;
  at.sun_family = AF_UNIX;
  socket_.copy(at.sun_path, socket_.size());
  if (socket_[0] == '@') at.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size() +
                                           (socket_[0] == '@' ? 0 : 1));
  const ssize_t n = ::sendto(from.get(), state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&at), size);
  return n == static_cast<ssize_t>(state.size());
}

std::optional<std::chrono::microseconds> watchdog_pause(const std::string& watchdog_usec,
                                                        const std::string& watchdog_pid) {
  const auto usec = number_of(watchdog_usec);
  if (!usec || *usec < 2) return std::nullopt;
  if (!watchdog_pid.empty() && number_of(watchdog_pid) != int64_t{::getpid()}) return std::nullopt;
  return std::chrono::microseconds(*usec / 2);
}

}  // namespace bitnet::host
