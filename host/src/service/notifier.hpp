#pragma once
// Messages of a service to systemd (sd_notify(3)): datagrams to the socket of NOTIFY_SOCKET.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace bitnet::host {

class service_notifier {
 public:
  // A path, or '@' and a name of the abstract namespace; "": no service manager listens, and
  // send() does nothing.
  explicit service_notifier(std::string socket) : socket_(std::move(socket)) {}

  // "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=...". False where it cannot be sent.
  bool send(std::string_view state) const;

 private:
  std::string socket_;
};

// Half of WATCHDOG_USEC, where WATCHDOG_PID is this process or not set: how often to send
// WATCHDOG=1. None without a watchdog.
[[nodiscard]] std::optional<std::chrono::microseconds> watchdog_pause(
    const std::string& watchdog_usec, const std::string& watchdog_pid);

}  // namespace bitnet::host
