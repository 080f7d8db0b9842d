#pragma once
// Ends a service in order: signals, the drain, and the messages to systemd.
//
// SIGTERM, SIGINT  the first: not ready at once, running requests go on; the second: the end
// SIGHUP           `on_reload`, for files of keys and certificates
//
// An engine whose device is lost, with no other in its place, ends the service as the first signal
// does: a manager of services starts it anew, perhaps on another machine.
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

// What the service works with, behind the routes.
struct service_work {
  std::vector<engine_work> engines;
  std::size_t n_unanswered = 0;  // requests that a drain waits for
};

struct supervisor_hooks {
  std::function<service_work()> look = {};
  std::function<void()> on_reload = {};
  std::function<void(const std::string&)> on_note = {};  // for the log
  // No request is waited for any more: what else keeps `io` at work ends now.
  std::function<void()> on_end = {};
};

class supervisor {
 public:
  // All of it outlives the supervisor. `variables` gives NOTIFY_SOCKET and the WATCHDOG ones.
  supervisor(boost::asio::io_context& io, http::server& server, service_life& life,
             supervisor_hooks hooks, const std::function<std::string(const char*)>& variables);
  ~supervisor();
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;

  // The first model is loaded: READY=1.
  void is_ready();
  // There is nothing to serve: the loop ends, and not in order.
  void give_up();
  // Whether all requests were answered before the end; known once `io` has run out of work.
  [[nodiscard]] bool ended_in_order() const;
  // The model whose engine was lost; "": none was.
  [[nodiscard]] const std::string& lost_model() const;

 private:
  struct contents;
  std::shared_ptr<contents> contents_;
};

}  // namespace bitnet::host
