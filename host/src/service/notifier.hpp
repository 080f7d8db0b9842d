#pragma once
// Sends a service's messages to systemd (sd_notify(3)), as datagrams to the socket NOTIFY_SOCKET.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace bitnet::host {

class service_notifier {
 public:
  // `socket`: a path, or '@' and a name in the abstract namespace. "": there is no service manager,
  // and send() does nothing.
  explicit service_notifier(std::string socket) : socket_(std::move(socket)) {}

  // `state`: "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=...". False if it cannot be sent.
  bool send(std::string_view state) const;

 private:
  std::string socket_;
};

// How often to send WATCHDOG=1: half of WATCHDOG_USEC, if WATCHDOG_PID is this process or unset.
// None without a watchdog.
[[nodiscard]] std::optional<std::chrono::microseconds> watchdog_pause(
    const std::string& watchdog_usec, const std::string& watchdog_pid);

}  // namespace bitnet::host
