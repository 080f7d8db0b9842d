#include "http/server.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <exception>
#include <unordered_map>
#include <utility>

#include "http/listeners.hpp"
#include "text/printable.hpp"

namespace bitnet::host::http {
namespace asio = boost::asio;

// Handlers queued in `io` hold it weakly, since they may run after the server's end.
struct server::contents final : connection_owner, std::enable_shared_from_this<contents> {
  contents(asio::io_context& on, policy how, server_hooks calls)
      : io(on), rules_of(std::move(how)), hooks(std::move(calls)), tick(on) {}

  // ---- connection_owner ----
  const policy& rules() const override { return rules_of; }
  void handle(const route& row, const exchange_ptr& given) override;
  void log(const access_line& line) override {
    if (hooks.on_answer) hooks.on_answer(line);
  }
  void forget(connection& one) override {
    connections.erase(&one);
    if (stopped && connections.empty()) tick.cancel();  // then `io` has no work left
  }
  bool take_body_bytes(std::size_t n) override {
    if (n > rules_of.bounds.all_body_bytes - body_bytes) return false;
    body_bytes += n;
    return true;
  }
  void give_body_bytes(std::size_t n) override { body_bytes -= n; }
  bool is_draining() const override { return draining; }

  void accept(listener& on);
  void accept_later(listener& on);
  void take(listener& on, stream_socket&& socket);
  [[nodiscard]] bool make_room();
  void keep_time();
  void stop();
  void abort();

  asio::io_context& io;
  policy rules_of;
  server_hooks hooks;
  std::vector<listener> listeners;
  std::vector<std::string> addresses;
  std::string unix_path;                    // removed at the end
  std::unique_ptr<asio::ssl::context> tls;  // connections keep their own reference
  std::string certificate_file, key_file;
  asio::steady_timer tick;
  std::size_t body_bytes = 0;
  bool draining = false, stopped = false;
  std::unordered_map<connection*, std::shared_ptr<connection>> connections;
};

namespace {

// "127.0.0.1:51234"; "unix" for a UNIX socket.
std::string peer_of(const stream_socket& socket) {
  boost::system::error_code ec;
  const auto at = socket.remote_endpoint(ec);
  const int family = ec ? AF_UNSPEC : at.protocol().family();
  if (family != AF_INET && family != AF_INET6) return "unix";
  asio::ip::tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), at.data(), std::min(at.size(), endpoint.capacity()));
  return fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

void set_no_delay(stream_socket& socket) {
  boost::system::error_code ignored;  // a UNIX socket has no such option
  static_cast<void>(socket.set_option(asio::ip::tcp::no_delay(true), ignored));
}

}  // namespace

void server::contents::handle(const route& row, const exchange_ptr& given) {
  std::string why;
  try {
    return row.handle(given);
  } catch (const std::bad_alloc&) {
    why = "out of memory";
  } catch (const std::exception& e) {
    why = e.what();
  }
  if (hooks.on_trouble)
    hooks.on_trouble(fmt::format("{} {} failed: {}", given->asked().method,
                                 text::printable(given->asked().path), why));
  if (given->status() == 0)
    given->reply(error_answer({.status = 500, .message = "internal error; the log has more"}));
  else
    given->break_off();
}

void server::contents::accept(listener& on) {
  on.acceptor.async_accept(
      [weak = weak_from_this(), &on](const boost::system::error_code& ec, stream_socket socket) {
        const auto self = weak.lock();
        if (!self || self->stopped || ec == asio::error::operation_aborted) return;
        if (ec) return self->accept_later(on);
        self->take(on, std::move(socket));
        self->accept(on);
      });
}

// After an error such as no free descriptor: an immediate retry would use up the processor.
void server::contents::accept_later(listener& on) {
  constexpr std::chrono::milliseconds pause(100);
  const auto timer = std::make_shared<asio::steady_timer>(io, pause);
  timer->async_wait([weak = weak_from_this(), timer, &on](const boost::system::error_code& ec) {
    if (const auto self = weak.lock(); self && !ec && !self->stopped) self->accept(on);
  });
}

// Closes a waiting connection, so that many incomplete requests do not keep other clients out.
bool server::contents::make_room() {
  if (connections.size() < rules_of.bounds.connections) return true;
  std::shared_ptr<connection> oldest;
  for (const auto& [key, one] : connections)
    if (const auto since = one->waits_since();
        since && (!oldest || *since < oldest->waits_since().value_or(*since)))
      oldest = one;
  if (!oldest) return false;
  oldest->close();
  return true;
}

void server::contents::take(listener& on, stream_socket&& socket) {
  if (!make_room()) {
    const answer no = unavailable_answer("too many connections; try again", 1);
    const std::string text = head_text({.status = no.status,
                                        .content_type = no.content_type,
                                        .length = no.body.size(),
                                        .keeps_alive = false},
                                       no.fields) +
                             no.body;
    boost::system::error_code ignored;
    static_cast<void>(socket.non_blocking(true, ignored));
    if (!tls || !on.is_tcp) static_cast<void>(socket.write_some(asio::buffer(text), ignored));
    return;
  }
  set_no_delay(socket);
  std::string peer = peer_of(socket);
  const auto executor = socket.get_executor();
  auto io_of = tls && on.is_tcp ? tls_transport(std::move(socket), *tls)
                                : plain_transport(std::move(socket));
  const auto made =
      std::make_shared<connection>(*this, std::move(io_of), std::move(peer), executor);
  connections.emplace(made.get(), made);
  made->begin();
}

// One timer serves all deadlines, which are seconds: each tick checks each connection once.
void server::contents::keep_time() {
  constexpr std::chrono::milliseconds pause(100);
  tick.expires_after(pause);
  tick.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (!self || ec) return;
    std::vector<std::shared_ptr<connection>> all;  // connections that end leave the map
    all.reserve(self->connections.size());
    for (const auto& [key, one] : self->connections) all.push_back(one);
    const auto now = connection::clock::now();
    for (const auto& one : all) one->look_at_clock(now);
    if (!self->stopped || !self->connections.empty()) self->keep_time();
  });
}

void server::contents::stop() {
  if (std::exchange(stopped, true)) return;
  if (connections.empty()) tick.cancel();
  boost::system::error_code ignored;
  for (listener& one : listeners) static_cast<void>(one.acceptor.close(ignored));
  std::vector<std::shared_ptr<connection>> all;
  all.reserve(connections.size());
  for (const auto& [key, one] : connections) all.push_back(one);
  for (const auto& one : all) one->end_when_idle();
}

void server::contents::abort() {
  stop();
  tick.cancel();
  std::vector<std::shared_ptr<connection>> all;
  all.reserve(connections.size());
  for (const auto& [key, one] : connections) all.push_back(one);
  for (const auto& one : all) one->close();
}

result<std::unique_ptr<server>> server::open(asio::io_context& io, policy rules,
                                             const listen_options& where, server_hooks hooks) {
  auto tls = open_tls(where);
  if (!tls) return std::unexpected(tls.error());
  auto listeners = open_listeners(io, where, !rules.keys.empty());
  if (!listeners) return std::unexpected(listeners.error());
  auto made = std::make_shared<contents>(io, std::move(rules), std::move(hooks));
  made->tls = *std::move(tls);
  made->rules_of.is_tls = made->tls != nullptr;
  made->listeners = *std::move(listeners);
  made->unix_path = where.unix_path;
  made->certificate_file = where.certificate_file;
  made->key_file = where.key_file;
  for (listener& one : made->listeners) {
    const char* scheme = !one.is_tcp ? "unix" : made->tls ? "https" : "http";
    made->addresses.push_back(fmt::format("{}:{}{}", scheme, one.is_tcp ? "//" : "", one.address));
    made->accept(one);
  }
  made->keep_time();
  return std::unique_ptr<server>(new server(std::move(made)));
}

server::server(std::shared_ptr<contents> c) : contents_(std::move(c)) {}

server::~server() {
  try {
    contents_->abort();
  } catch (const std::exception&) {
    contents_->connections.clear();
  }
  if (!contents_->unix_path.empty()) ::unlink(contents_->unix_path.c_str());
}

const std::vector<std::string>& server::addresses() const {
  return contents_->addresses;
}

uint16_t server::port() const {
  for (const listener& one : contents_->listeners)
    if (one.port != 0) return one.port;
  return 0;
}

std::size_t server::n_connections() const {
  return contents_->connections.size();
}

void server::set_keys(api_keys keys, api_keys admin_keys) {
  contents_->rules_of.keys = std::move(keys);
  contents_->rules_of.admin_keys = std::move(admin_keys);
}

result<bool> server::read_certificate() {
  if (!contents_->tls) return false;
  listen_options where;
  where.certificate_file = contents_->certificate_file;
  where.key_file = contents_->key_file;
  auto tls = open_tls(where);
  if (!tls) return std::unexpected(tls.error());
  contents_->tls = *std::move(tls);
  return true;
}

void server::drain() {
  contents_->draining = true;
}

void server::stop() {
  contents_->stop();
}

void server::abort() {
  contents_->abort();
}

}  // namespace bitnet::host::http
