#include "service/supervisor.hpp"

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <optional>
#include <utility>

namespace bitnet::host {
namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

struct supervisor::contents : std::enable_shared_from_this<contents> {
  contents(asio::io_context& io, http::server& on, service_life& of, supervisor_hooks calls,
           std::string notify_socket)
      : server(on),
        life(of),
        hooks(std::move(calls)),
        notifier(std::move(notify_socket)),
        signals(io, SIGTERM, SIGINT, SIGHUP),
        tick(io) {}

  void wait_for_signal();
  void on_signal(int number);
  void begin_to_end(const std::string& why);
  void look_for_losses(const service_work& work);
  [[nodiscard]] std::chrono::microseconds pause() const;
  void keep_watch();
  void look();
  void end(std::size_t n_unanswered);
  void leave();
  void note(const std::string& text) {
    if (hooks.on_note) hooks.on_note(text);
  }

  http::server& server;
  service_life& life;
  supervisor_hooks hooks;
  service_notifier notifier;
  std::optional<std::chrono::microseconds> watchdog;
  clock::time_point next_watchdog{};
  asio::signal_set signals;
  asio::steady_timer tick;
  std::string lost_model;
  bool is_over = false, in_order = false;
};

void supervisor::contents::wait_for_signal() {
  signals.async_wait([weak = weak_from_this()](const boost::system::error_code& ec, int number) {
    const auto self = weak.lock();
    if (!self || ec || self->is_over) return;
    self->on_signal(number);
    if (!self->is_over) self->wait_for_signal();
  });
}

void supervisor::contents::on_signal(int number) {
  if (number == SIGHUP) {
    if (hooks.on_reload) hooks.on_reload();
    return;
  }
  begin_to_end("asked to end");
  look();
  if (!is_over) keep_watch();
}

void supervisor::contents::begin_to_end(const std::string& why) {
  life.asked_to_end(clock::now());
  server.drain();
  if (life.at() != service_life::stage::draining) return;
  (void)notifier.send("STOPPING=1\nSTATUS=running requests are answered, no new ones are taken");
  note(why + ": running requests are answered, no new ones are taken; a signal ends at once");
}

void supervisor::contents::look_for_losses(const service_work& work) {
  if (!lost_model.empty()) return;
  const auto lost = std::ranges::find(work.engines, true, &engine_work::is_lost);
  if (lost == work.engines.end()) return;
  lost_model = lost->model;
  if (life.at() == service_life::stage::draining) return;
  begin_to_end("the device of the model " + lost_model +
               " is lost, and no other can take its place");
}

// Sends WATCHDOG=1 only while this loop runs and the engine ends its steps, so a process that
// merely exists sends none.
void supervisor::contents::look() {
  if (is_over) return;
  const auto now = clock::now();
  const service_work work = hooks.look();
  life.observe(work.engines, now);
  look_for_losses(work);
  if (watchdog && now >= next_watchdog && !life.hangs(now)) {
    (void)notifier.send("WATCHDOG=1");
    next_watchdog = now + *watchdog;
  }
  if (life.may_end(work.n_unanswered, now)) end(work.n_unanswered);
}

// The interval of checks for a drain's end, or for a hang while serving. An idle server wakes up
// twice a second.
std::chrono::microseconds supervisor::contents::pause() const {
  using std::chrono_literals::operator""ms;
  const std::chrono::microseconds usual = life.at() == service_life::stage::draining ? 50ms : 500ms;
  return watchdog ? std::min(usual, *watchdog / 2) : usual;
}

// A new call replaces the pending wait.
void supervisor::contents::keep_watch() {
  tick.expires_after(pause());
  tick.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (!self || ec || self->is_over) return;
    self->look();
    if (!self->is_over) self->keep_watch();
  });
}

void supervisor::contents::end(std::size_t n_unanswered) {
  in_order = life.ended_in_time(n_unanswered);
  note(in_order ? "all requests are answered; the end"
                : "the end, with requests that are not answered");
  leave();
}

void supervisor::contents::leave() {
  is_over = true;
  boost::system::error_code ignored;
  static_cast<void>(signals.cancel(ignored));
  static_cast<void>(tick.cancel());
  if (in_order)
    server.stop();
  else
    server.abort();
  if (hooks.on_end) hooks.on_end();
}

supervisor::supervisor(asio::io_context& io, http::server& server, service_life& life,
                       supervisor_hooks hooks,
                       const std::function<std::string(const char*)>& variables)
    : contents_(std::make_shared<contents>(io, server, life, std::move(hooks),
                                           variables("NOTIFY_SOCKET"))) {
  contents_->watchdog = watchdog_pause(variables("WATCHDOG_USEC"), variables("WATCHDOG_PID"));
  contents_->wait_for_signal();
  contents_->keep_watch();
}

supervisor::~supervisor() = default;

void supervisor::is_ready() {
  contents_->life.is_loaded();
  (void)contents_->notifier.send("READY=1\nSTATUS=requests are taken");
}

void supervisor::give_up() {
  if (!contents_->is_over) contents_->leave();
}

const std::string& supervisor::lost_model() const {
  return contents_->lost_model;
}

bool supervisor::ended_in_order() const {
  return contents_->in_order;
}

}  // namespace bitnet::host
