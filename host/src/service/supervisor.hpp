#pragma once
// Ends a service in order: handles signals, the drain, and the messages to systemd.
//
// SIGTERM, SIGINT  first: not ready at once, running requests continue; second: the service ends
// SIGHUP           `on_reload`, for files of keys and certificates
//
// If an engine's device is lost without a substitute, the service ends as on the first signal, so
// that a service manager restarts it, perhaps on another machine.
//
// Threads: the one that runs `io`.

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/server.hpp"
#include "service/life.hpp"
#include "service/notifier.hpp"

namespace bitnet::host {

// State of the service behind the routes.
struct service_work {
  std::vector<engine_work> engines;
  std::size_t n_unanswered = 0;  // requests that a drain waits for
};

struct supervisor_hooks {
  std::function<service_work()> look = {};
  std::function<void()> on_reload = {};
  std::function<void(const std::string&)> on_note = {};  // for the log
  // Called when no request is waited for any more: end whatever else keeps `io` busy.
  std::function<void()> on_end = {};
};

class supervisor {
 public:
  // All arguments outlive the supervisor. `variables` returns NOTIFY_SOCKET and the WATCHDOG ones.
  supervisor(boost::asio::io_context& io, http::server& server, service_life& life,
             supervisor_hooks hooks, const std::function<std::string(const char*)>& variables);
  ~supervisor();
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;

  // The first model is loaded: READY=1.
  void is_ready();
  // Nothing can be served: ends the loop, which counts as not in order.
  void give_up();
  // Whether all requests were answered before the end. Valid once `io` has run out of work.
  [[nodiscard]] bool ended_in_order() const;
  // The model whose device was lost; "": none.
  [[nodiscard]] const std::string& lost_model() const;

 private:
  struct contents;
  std::shared_ptr<contents> contents_;
};

}  // namespace bitnet::host
