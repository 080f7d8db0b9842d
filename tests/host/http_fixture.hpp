#pragma once
// A server with small limits in a thread of its own, whose routes do what the tests ask for.

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "http/server.hpp"
#include "http_client.hpp"

namespace bitnet::host::http {

using namespace std::chrono_literals;  // NOLINT: of the tests alone

// Waits for what another thread does, at most a minute.
inline bool becomes(const auto& condition) {
  for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(10ms);
  return condition();
}

inline limits small_limits() {
  limits out;
  out.head_bytes = 2048;
  out.fields = 20;
  out.body_bytes = 4096;
  out.ahead_bytes = 4096;
  out.output_bytes = 64 * 1024;
  out.connections = 8;
  out.head_time = 400ms;
  out.body_time = 400ms;
  out.idle_time = 800ms;
  out.write_time = 500ms;
  out.ping_time = 200ms;
  out.linger_time = 300ms;
  return out;
}

class http_server : public testing::Test {
 protected:
  void start(policy rules = {}, listen_options where = {}) {
    add_routes(rules.routes);
    where.port = 0;
    auto opened = server::open(io_, std::move(rules), where,
                               {.on_answer = [this](const access_line& line) { note(line); }});
    ASSERT_TRUE(opened) << opened.error().message;
    server_ = *std::move(opened);
    port_ = server_->port();
    thread_ = std::thread([this] { io_.run(); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    on_io([this] { server_.reset(); });
    guard_.reset();
    io_.stop();
    thread_.join();
  }
  static policy with(limits bounds) {
    policy out;
    out.bounds = bounds;
    return out;
  }
  void on_io(std::function<void()> call) {
    std::atomic<bool> done{false};
    boost::asio::post(io_, [&] {
      call();
      done = true;
    });
    ASSERT_TRUE(becomes([&] { return done.load(); }));
  }
  std::size_t n_connections() {
    std::size_t out = 0;
    on_io([&] { out = server_->n_connections(); });
    return out;
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      io_.get_executor()};
  std::unique_ptr<server> server_;
  uint16_t port_ = 0;
  std::atomic<int> n_waiting_{0}, n_gone_{0}, n_answers_{0}, n_whole_{0};
  std::atomic<std::size_t> n_streamed_{0};
  std::thread thread_;

 private:
  void note(const access_line& line) {
    ++n_answers_;
    if (line.is_whole) ++n_whole_;
  }
  void add_routes(route_table& to);
  // Writes until there is no room, then waits for room, for ever.
  void pour(const exchange_ptr& given) {
    given->begin_stream({.content_type = "text/plain"});
    given->on_gone([this] { ++n_gone_; });
    const auto fill = [this, weak = std::weak_ptr(given)] {
      const auto to = weak.lock();
      while (to && to->has_room() && to->write(std::string(1000, 'x'))) n_streamed_ += 1000;
    };
    given->on_room(fill);
    fill();
  }
};

inline void http_server::add_routes(route_table& to) {
  to.add({.method = "GET", .paths = {"/hello"}, .summary = "A text", .handle = [](auto& given) {
            given->reply({.content_type = "text/plain", .body = "hello " + given->asked().query});
          }});
  to.add({.method = "POST", .paths = {"/echo"}, .summary = "The body", .handle = [](auto& given) {
            given->reply({.content_type = "text/plain", .body = given->asked().body});
          }});
  to.add({.method = "GET", .paths = {"/wait"}, .summary = "Never", .handle = [this](auto& given) {
            ++n_waiting_;
            given->on_gone([this] { ++n_gone_; });
          }});
  to.add({.method = "GET", .paths = {"/events"}, .summary = "3", .handle = [](auto& given) {
            given->begin_stream({.content_type = "text/event-stream"});
            for (int i = 0; i < 3; ++i) given->write("data: " + std::to_string(i) + "\n\n");
            given->finish();
          }});
  to.add({.method = "GET", .paths = {"/silent"}, .summary = "Pings", .handle = [](auto& given) {
            given->begin_stream({.content_type = "text/event-stream"});
          }});
  to.add({.method = "GET", .paths = {"/pour"}, .summary = "Endless", .handle = [this](auto& given) {
            pour(given);
          }});
  to.add({.method = "GET",
          .paths = {"/flood"},
          .summary = "Heeds no room",
          .handle = [this](auto& given) {
            given->begin_stream({.content_type = "text/plain"});
            while (given->write(std::string(1000, 'x'))) n_streamed_ += 1000;
          }});
  to.add({.method = "GET", .paths = {"/throw"}, .summary = "Fails", .handle = [](auto&) {
            throw std::runtime_error("on purpose");
          }});
  to.add({.method = "GET",
          .paths = {"/open/{name}"},
          .summary = "Without key",
          .handle =
              [](auto& given) {
                given->reply({.content_type = "text/plain",
                              .body = std::string(given->asked().path_value("name"))});
              },
          .access = access_level::open});
}

inline constexpr std::string_view get_hello = "GET /hello?a HTTP/1.1\r\nHost: x\r\n\r\n";

inline bool begins(const std::string& text, std::string_view with) {
  return text.starts_with(with);
}
inline bool has(const std::string& text, std::string_view what) {
  return text.contains(what);
}

}  // namespace bitnet::host::http
