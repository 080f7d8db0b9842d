// When a service is alive, takes requests and may end; and the messages to systemd, of which a
// socket of the test is the reader.
#include "service/life.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>

#include "../scratch_folder.hpp"
#include "files/descriptor.hpp"
#include "service/notifier.hpp"

namespace bitnet::host {
namespace {

using namespace std::chrono_literals;
using stage = service_life::stage;

const service_life::time t0{};

service_life loaded() {
  service_life out(10s, 30s);
  out.is_loaded();
  return out;
}

std::string retry_after(const http::answer& of) {
  for (const auto& [name, value] : of.fields)
    if (name == "Retry-After") return value;
  return "";
}

TEST(service_life, takes_no_request_before_the_model_is_loaded) {
  service_life life(10s, 30s);
  EXPECT_EQ(life.health(t0).status, 503);
  EXPECT_EQ(life.readiness(t0).status, 503);
  EXPECT_EQ(life.rejection(t0)->status, 503);
  EXPECT_NE(retry_after(*life.rejection(t0)), "");
  life.is_loaded();
  EXPECT_EQ(life.health(t0).status, 200);
  EXPECT_EQ(life.health(t0).body, R"({"status":"ok"})");
  EXPECT_EQ(life.readiness(t0).status, 200);
  EXPECT_FALSE(life.rejection(t0));
}

void observe(service_life& life, uint64_t steps, bool has_work, service_life::time now) {
  const engine_work one{.model = "m", .steps = steps, .has_work = has_work};
  life.observe({&one, 1}, now);
}

TEST(service_life, is_not_alive_when_one_of_several_engines_ends_no_step) {
  service_life life = loaded();
  const auto observe_two = [&](uint64_t first, uint64_t second, service_life::time now) {
    const std::vector<engine_work> both = {{"a", first, true}, {"b", second, true}};
    life.observe(both, now);
  };
  for (unsigned i = 0; i < 20; ++i) observe_two(i / 2, (i + 1) / 2, t0 + 1s * i);
  EXPECT_FALSE(life.hangs(t0 + 19s)) << "both end steps, in turn";
  for (unsigned i = 20; i < 40; ++i) observe_two(i, 10, t0 + 1s * i);
  EXPECT_TRUE(life.hangs(t0 + 39s)) << "the second ends none";
  life.observe({}, t0 + 40s);
  EXPECT_FALSE(life.hangs(t0 + 100s)) << "both are unloaded";
}

TEST(service_life, is_not_alive_when_no_step_ends_with_work_queued) {
  service_life life = loaded();
  observe(life, 5, false, t0);
  observe(life, 5, false, t0 + 60s);
  EXPECT_FALSE(life.hangs(t0 + 60s)) << "without work there are no steps";
  observe(life, 5, true, t0 + 61s);
  EXPECT_FALSE(life.hangs(t0 + 70s));
  EXPECT_TRUE(life.hangs(t0 + 71s));
  EXPECT_EQ(life.health(t0 + 71s).status, 503);
  EXPECT_EQ(life.readiness(t0 + 71s).status, 503);
  EXPECT_TRUE(life.health(t0 + 71s).body.contains("engine_hangs"));
  observe(life, 6, true, t0 + 72s);
  EXPECT_FALSE(life.hangs(t0 + 72s)) << "a step has ended";
  for (int i = 0; i < 60; ++i)
    observe(life, 7U + static_cast<unsigned>(i), true, t0 + 73s + 1s * i);
  EXPECT_FALSE(life.hangs(t0 + 133s)) << "steps end";
  observe(life, 66, false, t0 + 134s);
  EXPECT_FALSE(life.hangs(t0 + 500s)) << "the work is done";
}

TEST(service_life, drains_once_and_ends_when_asked_again) {
  service_life life = loaded();
  EXPECT_FALSE(life.may_end(0, t0));
  life.asked_to_end(t0);
  EXPECT_EQ(life.at(), stage::draining);
  EXPECT_EQ(life.readiness(t0).status, 503);
  EXPECT_EQ(life.health(t0).status, 200) << "a drain is healthy";
  EXPECT_EQ(retry_after(*life.rejection(t0)), "30");
  EXPECT_EQ(retry_after(*life.rejection(t0 + 29500ms)), "1");
  EXPECT_FALSE(life.may_end(1, t0 + 29s));
  EXPECT_TRUE(life.may_end(0, t0 + 29s));
  EXPECT_TRUE(life.ended_in_time(0));
  EXPECT_TRUE(life.may_end(1, t0 + 30s));
  EXPECT_FALSE(life.ended_in_time(1));
  life.asked_to_end(t0 + 1s);
  EXPECT_TRUE(life.may_end(1, t0 + 1s));
  EXPECT_FALSE(life.ended_in_time(0));
  life.is_loaded();
  EXPECT_EQ(life.at(), stage::ended) << "a model that is loaded too late begins nothing";
}

TEST(service_notifier, sends_to_paths_and_abstract_names) {
  const test::scratch_folder folder;
  const std::string names[] = {(folder.path() / "n").string(),
                               "@bitnet-test-" + std::to_string(::getpid())};
  for (const std::string& name : names) {
    const files::descriptor to(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    name.copy(at.sun_path, sizeof at.sun_path - 1);
    const bool is_path = name[0] == '/';
    if (!is_path) at.sun_path[0] = '\0';
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (is_path ? 1 : 0));
    ASSERT_EQ(::bind(to.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_TRUE(service_notifier(name).send("READY=1"));
    std::array<char, 64> got{};
    const ssize_t n = ::recv(to.get(), got.data(), got.size(), MSG_DONTWAIT);
    EXPECT_EQ(std::string(got.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))),
              "READY=1");
  }
  for (const char* none : {"", "/", "relative", "/no/such/socket"})
    EXPECT_FALSE(service_notifier(none).send("READY=1")) << none;
  EXPECT_FALSE(service_notifier("/" + std::string(200, 'x')).send("READY=1"));
}

TEST(service_notifier, keeps_half_of_the_watchdogs_time) {
  EXPECT_EQ(watchdog_pause("30000000", ""), 15s);
  EXPECT_EQ(watchdog_pause("30000000", std::to_string(::getpid())), 15s);
  EXPECT_FALSE(watchdog_pause("30000000", "1"));
  for (const char* none : {"", "0", "-5", "x", "99999999999999999999"})
    EXPECT_FALSE(watchdog_pause(none, "")) << none;
}

}  // namespace
}  // namespace bitnet::host
