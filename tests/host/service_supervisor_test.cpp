// Signals end a service in order: a request that runs is answered, new ones are rejected, a second
// signal ends at once, and systemd gets its messages.
#include "service/supervisor.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <map>

#include "../scratch_folder.hpp"
#include "files/descriptor.hpp"
#include "http_fixture.hpp"

namespace bitnet::host {
namespace {

using namespace std::chrono_literals;
using http::becomes;
using http::raw_client;

// A service whose requests wait until the test ends them.
class supervised : public testing::Test {
 protected:
  void start(std::chrono::milliseconds drain_time) {
    listen_to_messages();
    life_.emplace(10s, drain_time);
    http::policy rules;
    rules.routes.add(
        {.method = "GET", .paths = {"/ready"}, .summary = "", .handle = [this](auto& given) {
           given->reply(life_->readiness(std::chrono::steady_clock::now()));
         }});
    rules.routes.add(
        {.method = "GET", .paths = {"/work"}, .summary = "", .handle = [this](auto& e) {
           work(e);
         }});
    auto opened = http::server::open(io_, std::move(rules), {.port = 0}, {});
    ASSERT_TRUE(opened);
    server_ = *std::move(opened);
    supervisor_.emplace(
        io_, *server_, *life_,
        supervisor_hooks{.look = [this] { return look(); }, .on_reload = [this] { ++n_reloads_; }},
        [this](const char* name) {
          if (std::string_view(name) == "NOTIFY_SOCKET") return notify_path_;
          return std::string(std::string_view(name) == "WATCHDOG_USEC" ? "100000" : "");
        });
    thread_ = std::thread([this] { io_.run(); });
    boost::asio::post(io_, [this] { supervisor_->is_ready(); });
    ASSERT_TRUE(becomes([&] { return messages().contains("READY=1"); }));
  }
  void TearDown() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
    supervisor_.reset();
    server_.reset();
  }
  std::string get(const char* path) const {
    raw_client client(server_->port());
    client.send(std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return client.read_to_end();
  }
  void answer_all() {
    boost::asio::post(io_, [this] {
      for (const auto& one : std::exchange(open_, {})) one->reply({.body = "{\"done\":true}"});
    });
  }
  // Whether the loop has run out of work by itself.
  bool ends() {
    return becomes([&] { return io_.stopped(); });
  }
  const std::string& messages() {
    std::array<char, 512> part{};
    for (;;) {
      const ssize_t n = ::recv(notify_.get(), part.data(), part.size(), MSG_DONTWAIT);
      if (n <= 0) return messages_;
      messages_.append(part.data(), static_cast<std::size_t>(n)).append("\n");
    }
  }

  std::atomic<int> n_reloads_{0}, n_open_{0}, n_gone_{0};
  std::atomic<bool> is_lost_{false};
  std::optional<supervisor> supervisor_;
  std::unique_ptr<http::server> server_;

 private:
  void work(const http::exchange_ptr& given) {
    if (const auto no = life_->rejection(std::chrono::steady_clock::now()))
      return given->reply(*no);
    given->on_gone([this] { ++n_gone_; });
    open_.push_back(given);
    ++n_open_;
  }
  service_work look() {
    std::erase_if(open_, [](const auto& one) { return one->is_over(); });
    return {.engines = {{"m", ++steps_, !open_.empty(), is_lost_}}, .n_unanswered = open_.size()};
  }
  void listen_to_messages() {
    notify_path_ = (folder_.path() / "notify").string();
    notify_ = files::descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    notify_path_.copy(at.sun_path, sizeof at.sun_path - 1);
    ASSERT_EQ(::bind(notify_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  }

  test::scratch_folder folder_;
  std::string notify_path_, messages_;
  files::descriptor notify_;
  boost::asio::io_context io_;
  std::optional<service_life> life_;
  std::vector<http::exchange_ptr> open_;
  uint64_t steps_ = 0;
  std::thread thread_;
};

TEST_F(supervised, answers_what_runs_and_then_ends) {
  start(10s);
  EXPECT_TRUE(get("/ready").starts_with("HTTP/1.1 200 "));
  raw_client client(server_->port());
  client.send("GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(becomes([&] { return n_open_ == 1; }));
  ::raise(SIGTERM);
  ASSERT_TRUE(becomes([&] { return messages().contains("STOPPING=1"); }));
  EXPECT_TRUE(get("/ready").starts_with("HTTP/1.1 503 "));
  const std::string rejected = get("/work");
  EXPECT_TRUE(rejected.starts_with("HTTP/1.1 503 ") && rejected.contains("Retry-After: "))
      << rejected;
  answer_all();
  EXPECT_TRUE(client.read_to_end().contains("{\"done\":true}"));
  EXPECT_TRUE(ends());
  EXPECT_TRUE(supervisor_->ended_in_order());
  EXPECT_EQ(n_gone_, 0);
}

TEST_F(supervised, ends_at_once_when_asked_twice) {
  start(10s);
  raw_client client(server_->port());
  client.send("GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(becomes([&] { return n_open_ == 1; }));
  ::raise(SIGTERM);
  ASSERT_TRUE(becomes([&] { return messages().contains("STOPPING=1"); }));
  ::raise(SIGTERM);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_TRUE(ends());
  EXPECT_FALSE(supervisor_->ended_in_order());
  EXPECT_EQ(n_gone_, 1);
}

TEST_F(supervised, ends_when_the_drains_time_is_over) {
  start(200ms);
  raw_client client(server_->port());
  client.send("GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(becomes([&] { return n_open_ == 1; }));
  ::raise(SIGINT);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_TRUE(ends());
  EXPECT_FALSE(supervisor_->ended_in_order());
}

TEST_F(supervised, ends_when_an_engine_is_lost) {
  start(10s);
  raw_client client(server_->port());
  client.send("GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(becomes([&] { return n_open_ == 1; }));
  is_lost_ = true;
  ASSERT_TRUE(becomes([&] { return messages().contains("STOPPING=1"); }));
  EXPECT_TRUE(get("/ready").starts_with("HTTP/1.1 503 "));
  answer_all();
  EXPECT_TRUE(client.read_to_end().contains("{\"done\":true}")) << "errors reach their clients";
  EXPECT_TRUE(ends());
  EXPECT_EQ(supervisor_->lost_model(), "m");
}

TEST_F(supervised, reloads_and_feeds_the_watchdog) {
  start(10s);
  ::raise(SIGHUP);
  EXPECT_TRUE(becomes([&] { return n_reloads_ == 1; }));
  EXPECT_TRUE(becomes([&] { return messages().contains("WATCHDOG=1"); }));
  ::raise(SIGTERM);
  EXPECT_TRUE(ends());
  EXPECT_TRUE(supervisor_->ended_in_order());
}

}  // namespace
}  // namespace bitnet::host
