// What a client may cost, and each end that it can come to: over loopback, with small limits.
#include <poll.h>

#include <array>

#include "http_fixture.hpp"

namespace bitnet::host::http {
namespace {

TEST_F(http_server, notifies_the_handler_when_the_client_is_gone) {
  start(with(small_limits()));
  const struct {
    const char* why;
    void (*end)(raw_client&);
  } ends[] = {{"FIN", [](raw_client& c) { c.close(); }},
              {"RST", [](raw_client& c) { c.reset(); }},
              {"half-close", [](raw_client& c) { c.shut_down_sending(); }}};
  // Grows when a handler of either path runs.
  const auto n_begun = [&] { return static_cast<std::size_t>(n_waiting_) + n_streamed_; };
  for (const char* path : {"/wait", "/pour"})
    for (const auto& row : ends) {
      const int before = n_gone_;
      const std::size_t begun = n_begun();
      raw_client client(port_);
      client.send(std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
      EXPECT_TRUE(becomes([&] { return n_begun() > begun; })) << path << " " << row.why;
      row.end(client);
      EXPECT_TRUE(becomes([&] { return n_gone_ == before + 1; })) << path << " " << row.why;
    }
  EXPECT_TRUE(becomes([&] { return n_connections() == 0; }));
}

TEST_F(http_server, sees_the_clients_end_behind_pipelined_bytes) {
  start(with(small_limits()));
  raw_client client(port_);
  client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(10'000, 'x'));
  EXPECT_TRUE(becomes([&] { return n_waiting_ == 1; }));
  client.close();
  EXPECT_TRUE(becomes([&] { return n_gone_ == 1; }));
}

TEST_F(http_server, ends_a_stream_whose_client_reads_nothing) {
  start(with(small_limits()));
  raw_client client(port_);
  const int small = 4096;
  ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  client.send("GET /pour HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(becomes([&] { return n_gone_ == 1; }));
  // The handler was paused: what was written is the buffer and what the kernel took.
  EXPECT_LT(n_streamed_, std::size_t{16} * 1024 * 1024);
}

TEST_F(http_server, ends_a_stream_that_heeds_no_room) {
  start(with(small_limits()));
  raw_client client(port_);
  client.send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
  (void)client.read_to_end();
  EXPECT_TRUE(client.has_ended());
  EXPECT_LE(n_streamed_, small_limits().output_bytes + 1000);
  EXPECT_TRUE(becomes([&] { return n_answers_ == 1 && n_whole_ == 0; }));
}

TEST_F(http_server, a_slow_client_keeps_no_other_one_waiting) {
  start(with(small_limits()));
  raw_client slow(port_), other(port_);
  slow.send("GET /pour HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(becomes([&] { return n_streamed_ > 0; }));
  other.send(get_hello);
  EXPECT_TRUE(other.read_answer().ends_with("hello a"));
}

TEST_F(http_server, gives_slow_requests_a_time) {
  start(with(small_limits()));
  const struct {
    const char* why;
    std::string bytes;
    std::string_view answer;
  } rows[] = {{"nothing", "", ""},
              {"half a head", "GET /hello HTT", "HTTP/1.1 408 "},
              {"half a body", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab",
               "HTTP/1.1 408 "}};
  for (const auto& row : rows) {
    raw_client client(port_);
    client.send(row.bytes);
    EXPECT_TRUE(begins(client.read_to_end(), row.answer)) << row.why;
    EXPECT_TRUE(client.has_ended()) << row.why;
  }
}

TEST_F(http_server, gives_a_head_that_drips_the_same_time) {
  start(with(small_limits()));
  raw_client client(port_);
  int sent = 0;
  while (sent < 1200 && client.send(sent == 0 ? "GET / HTTP/1.1\r\nX: " : "x")) {
    std::this_thread::sleep_for(50ms);  // the client is slow
    ++sent;
  }
  EXPECT_TRUE(has(client.read_to_end(), "408"));
  EXPECT_LT(sent, 1200) << "a minute of single bytes";
}

TEST_F(http_server, rejects_what_is_too_large_or_no_request) {
  start(with(small_limits()));
  const std::string post = "POST /echo HTTP/1.1\r\nHost: x\r\n";
  const struct {
    const char* why;
    std::string bytes;
    std::string_view status;
  } rows[] = {
      {"a long head", "GET / HTTP/1.1\r\nX: " + std::string(5000, 'x'), "HTTP/1.1 431 "},
      {"a body that says it is long", post + "Content-Length: 5000\r\n\r\n", "HTTP/1.1 413 "},
      {"a chunk that says it is long", post + "Transfer-Encoding: chunked\r\n\r\n2000\r\n",
       "HTTP/1.1 413 "},
      {"both lengths", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "HTTP/1.1 400 "},
      {"a body of GET", "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na",
       "HTTP/1.1 400 "},
      {"TLS to a plain port", "\x16\x03\x01\x02\x00\n\r\n\r\n", "HTTP/1.1 400 "}};
  for (const auto& row : rows) {
    raw_client client(port_);
    // A second request behind it is never answered.
    client.send(row.bytes + std::string(get_hello));
    const std::string got = client.read_to_end();
    EXPECT_TRUE(begins(got, row.status)) << row.why << ": " << got;
    EXPECT_TRUE(has(got, "\"error\":{\"message\":")) << row.why;
    EXPECT_FALSE(has(got, "hello")) << row.why;
    EXPECT_TRUE(client.has_ended()) << row.why;
  }
}

TEST_F(http_server, bounds_connections_and_bodies_of_all_together) {
  limits bounds = small_limits();
  bounds.all_body_bytes = 4000;
  bounds.body_time = bounds.head_time = 5000ms;
  start(with(bounds));
  const std::string part =
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\n\r\n" + std::string(2500, 'x');
  {
    raw_client one(port_), other(port_);
    one.send(part);
    other.send(part);
    // The server rejects the one with which it reads byte 4001 of both.
    std::array<pollfd, 2> both{{{one.fd(), POLLIN, 0}, {other.fd(), POLLIN, 0}}};
    ASSERT_EQ(::poll(both.data(), both.size(), 3000), 1);
    raw_client& rejected = both[0].revents != 0 ? one : other;
    raw_client& accepted = both[0].revents != 0 ? other : one;
    EXPECT_TRUE(begins(rejected.read_to_end(), "HTTP/1.1 503 "));
    accepted.send(std::string(500, 'x'));
    EXPECT_TRUE(begins(accepted.read_answer(), "HTTP/1.1 200 "));
    accepted.send(part + std::string(500, 'x'));  // the room of its first body is free again
    EXPECT_TRUE(begins(accepted.read_answer(), "HTTP/1.1 200 "));
  }
}

TEST_F(http_server, past_its_bound_gives_up_the_connection_that_waits_the_longest) {
  limits bounds = small_limits();
  bounds.body_time = bounds.head_time = bounds.idle_time = 5000ms;
  start(with(bounds));
  std::vector<std::unique_ptr<raw_client>> many;
  const auto open_one = [&](std::string_view text) {
    many.push_back(std::make_unique<raw_client>(port_));
    many.back()->send(std::string(text));
  };
  // Returns when the server has accepted it, so that it waits for longer than the next one.
  const auto open_before_the_next = [&](std::string_view text) {
    open_one(text);
    ASSERT_TRUE(becomes([&] { return n_connections() == many.size(); }));
  };
  open_before_the_next("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");  // is answered: it stays
  ASSERT_TRUE(becomes([&] { return n_waiting_ == 1; }));
  open_before_the_next("GE");
  open_before_the_next("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx");
  while (many.size() < bounds.connections) open_before_the_next("");
  for (std::size_t i = 1; i < 4; ++i) {
    open_one("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(begins(many.back()->read_answer(), "HTTP/1.1 200 ")) << i;
    EXPECT_EQ(many[i]->read_to_end(), "") << i;
    EXPECT_LE(n_connections(), bounds.connections);
  }
}

TEST_F(http_server, rejects_a_connection_where_all_others_are_answered) {
  limits bounds = small_limits();
  start(with(bounds));
  std::vector<std::unique_ptr<raw_client>> many;
  for (std::size_t i = 0; i < bounds.connections; ++i) {
    many.push_back(std::make_unique<raw_client>(port_));
    many.back()->send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  EXPECT_TRUE(becomes([&] { return n_waiting_ == static_cast<int>(bounds.connections); }));
  raw_client late(port_);
  EXPECT_TRUE(begins(late.read_to_end(), "HTTP/1.1 503 "));
}

}  // namespace
}  // namespace bitnet::host::http
