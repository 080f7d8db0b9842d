// Many requests at once, through bitnet.h: each gets the text that it gets alone.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "demo_session.hpp"

namespace {

using bitnet::test::blank_error;
using bitnet::test::demo_session;

constexpr uint32_t patience_ms = 60'000;

struct answer {
  std::vector<bitnet_token> tokens;
  std::string text;
  std::vector<float> logprobs;
  std::vector<std::vector<bitnet_logprob>> top;
  bitnet_event end{};
  std::string message;
};

// What one request asks for, and how its text is made.
struct wish {
  std::vector<bitnet_token> prompt;
  int32_t max_tokens = 12;
  uint32_t seed = 7;
  float temperature = 0;
  uint32_t n_choices = 1;
  uint32_t logprobs = 0, n_top = 0;
  int32_t priority = 0;
  uint32_t deadline_ms = 0;
  const char* grammar = nullptr;
};

// As demo_session chooses it.
std::string device() {
  const char* const named = std::getenv("BITNET_TEST_DEVICE");
  return named != nullptr ? named : "cpu";
}

// A prompt of `n` tokens that no other `kind` has.
std::vector<bitnet_token> prompt_of(uint32_t n, uint32_t kind) {
  std::vector<bitnet_token> out;
  for (uint32_t i = 0; i < n; ++i)
    out.push_back(static_cast<bitnet_token>(3 + (i * (2 * kind + 1) + kind) % 200));
  return out;
}

class scheduler : public testing::Test {
 protected:
  void SetUp() override {
    const bitnet_status s = demo_.open(2);
    if (s == BITNET_NOT_FOUND || s == BITNET_UNAVAILABLE)
      GTEST_SKIP() << "no demo model or no backend: " << demo_.error.message;
    ASSERT_EQ(s, BITNET_OK) << demo_.error.message;
  }
  void TearDown() override {
    for (bitnet_request* r : requests_) bitnet_request_close(r);
    bitnet_scheduler_close(scheduler_);
  }

  bitnet_status open(bitnet_scheduler_options o) {
    bitnet_session_options of;
    bitnet_session_defaults(&of, sizeof of);
    of.n_context = 512;
    of.n_batch = n_batch_;
    of.deterministic = 1;
    o.sequences = &of;
    error_ = blank_error();
    return bitnet_scheduler_open(demo_.model, &o, &scheduler_, &error_);
  }
  static bitnet_scheduler_options defaults() {
    bitnet_scheduler_options o;
    bitnet_scheduler_defaults(&o, sizeof o);
    return o;
  }

  static bitnet_sampling sampling_of(const wish& w, uint32_t choice) {
    bitnet_sampling s;
    bitnet_sampling_defaults(&s, sizeof s);
    s.temperature = w.temperature;
    s.seed = w.seed + choice;
    s.ignore_eos = w.grammar == nullptr ? 1 : 0;
    return s;
  }
  static bitnet_generation generation_of(const wish& w, const bitnet_sampling& s) {
    bitnet_generation g;
    bitnet_generation_defaults(&g, sizeof g);
    g.max_tokens = w.max_tokens;
    g.sampling = &s;
    if (w.grammar != nullptr) g.grammar = {w.grammar, std::char_traits<char>::length(w.grammar)};
    return g;
  }

  bitnet_status try_submit(const wish& w, bitnet_request** out) {
    const bitnet_sampling s = sampling_of(w, 0);
    const bitnet_generation g = generation_of(w, s);
    bitnet_request_options o;
    bitnet_request_defaults(&o, sizeof o);
    o.prompt = w.prompt.data();
    o.n_prompt = w.prompt.size();
    o.generation = &g;
    o.n_choices = w.n_choices;
    o.logprobs = w.logprobs;
    o.n_top_logprobs = w.n_top;
    o.priority = w.priority;
    o.deadline_ms = w.deadline_ms;
    error_ = blank_error();
    return bitnet_request_submit(scheduler_, &o, out, &error_);
  }
  bitnet_request* submit(const wish& w) {
    bitnet_request* r = nullptr;
    EXPECT_EQ(try_submit(w, &r), BITNET_OK) << error_.message;
    if (r != nullptr) requests_.push_back(r);
    return r;
  }

  // Takes one event; false at the end of all choices.
  bool take(bitnet_request* r, std::map<uint32_t, answer>& all) {
    bitnet_event e{};
    e.struct_size = sizeof e;
    error_ = blank_error();
    const bitnet_status s = bitnet_request_next(r, patience_ms, &e, &error_);
    if (s == BITNET_NOT_FOUND) return false;
    EXPECT_EQ(s, BITNET_OK) << error_.message;
    if (s != BITNET_OK) return false;
    answer& to = all[e.choice];
    if (e.kind != BITNET_EVENT_TEXT) {
      to.end = e;
      to.message.assign(e.message.data == nullptr ? "" : e.message.data, e.message.size);
      return true;
    }
    to.text.append(e.text.data == nullptr ? "" : e.text.data, e.text.size);
    if (e.token < 0) return true;
    to.tokens.push_back(e.token);
    to.logprobs.push_back(e.logprob);
    to.top.emplace_back(e.top, e.top + e.n_top);
    return true;
  }
  std::map<uint32_t, answer> read(bitnet_request* r) {
    std::map<uint32_t, answer> all;
    while (take(r, all)) {
    }
    return all;
  }

  // A request that goes on until it is ended, of which one event has come.
  bitnet_request* begin_endless(std::map<uint32_t, answer>& all) {
    wish w;
    w.prompt = prompt_of(5, 1);
    w.max_tokens = -1;
    bitnet_request* const r = submit(w);
    EXPECT_TRUE(take(r, all));
    return r;
  }

  // The tokens of a session that has nothing else.
  std::vector<bitnet_token> alone(const wish& w, uint32_t choice = 0) {
    bitnet_session_options of;
    bitnet_session_defaults(&of, sizeof of);
    of.n_context = 512;
    of.deterministic = 1;
    bitnet_session* s = nullptr;
    error_ = blank_error();
    EXPECT_EQ(bitnet_session_open(demo_.model, &of, &s, &error_), BITNET_OK) << error_.message;
    const bitnet_sampling sampling = sampling_of(w, choice);
    bitnet_generation g = generation_of(w, sampling);
    std::vector<bitnet_token> out(512);
    g.out_tokens = out.data();
    g.out_capacity = out.size();
    bitnet_generation_result r{};
    r.struct_size = sizeof r;
    EXPECT_EQ(bitnet_generate(s, w.prompt.data(), w.prompt.size(), &g, &r, &error_), BITNET_OK)
        << error_.message;
    out.resize(r.n_generated);
    bitnet_session_close(s);
    return out;
  }

  nlohmann::json report() {
    uint64_t n = 0;
    EXPECT_EQ(bitnet_scheduler_report(scheduler_, nullptr, 0, &n, nullptr), BITNET_OK);
    std::string text(n, ' ');
    EXPECT_EQ(bitnet_scheduler_report(scheduler_, text.data(), n, &n, nullptr), BITNET_OK);
    return nlohmann::json::parse(text);
  }

  // Behind the last event: the tick that it comes from may not be over.
  void expect_no_blocks() {
    for (int i = 0; i < 1000 && report()["kv"]["used"] != 0; ++i) poll(nullptr, 0, 5);
    EXPECT_EQ(report()["kv"]["used"], 0);
  }

  demo_session demo_;
  bitnet_scheduler* scheduler_ = nullptr;
  std::vector<bitnet_request*> requests_;
  bitnet_error error_ = blank_error();
  uint32_t n_batch_ = 64;
};

TEST_F(scheduler, gives_each_of_many_the_tokens_that_it_gets_alone) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  std::vector<wish> wishes;
  for (uint32_t i = 0; i < 20; ++i) {
    wish w;
    w.prompt = prompt_of(1 + i * 11, i % 7);
    w.max_tokens = static_cast<int32_t>(3 + i % 5 * 6);
    w.temperature = i % 2 == 0 ? 0.0F : 0.9F;
    w.seed = i;
    wishes.push_back(std::move(w));
  }
  std::vector<bitnet_request*> all;
  for (const wish& w : wishes) all.push_back(submit(w));
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    SCOPED_TRACE("request " + std::to_string(i));
    const auto got = read(all[i]);
    ASSERT_EQ(got.size(), 1U);
    const answer& one = got.at(0);
    EXPECT_EQ(one.end.kind, BITNET_EVENT_END) << one.message;
    EXPECT_EQ(one.end.stop_reason, BITNET_STOP_LENGTH);
    EXPECT_EQ(one.end.n_prompt, wishes[i].prompt.size());
    EXPECT_EQ(one.end.n_generated, one.tokens.size());
    EXPECT_EQ(one.tokens, alone(wishes[i]));
  }
  expect_no_blocks();
  const auto said = report();
  EXPECT_EQ(said["choices"]["length"], 20);
  EXPECT_EQ(said["backend"], device());
}

TEST_F(scheduler, computes_a_prefix_once) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  wish w;
  w.prompt = prompt_of(200, 3);
  const auto first = read(submit(w)).at(0);
  w.prompt.push_back(9);
  const auto second = read(submit(w)).at(0);
  EXPECT_EQ(first.end.n_cached, 0U);
  EXPECT_EQ(second.end.n_cached, 192U);  // three blocks of 64
  EXPECT_EQ(second.tokens, alone(w));
  EXPECT_EQ(report()["prefix"]["found"], 192);
}

TEST_F(scheduler, gives_a_prompt_several_answers) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  wish w;
  w.prompt = prompt_of(70, 1);
  w.temperature = 1.0F;
  w.n_choices = 3;
  const auto got = read(submit(w));
  ASSERT_EQ(got.size(), 3U);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(got.at(i).tokens, alone(w, i)) << "choice " << i;
  EXPECT_NE(got.at(0).tokens, got.at(1).tokens);
}

TEST_F(scheduler, keeps_each_of_many_to_its_grammar) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  wish free, bound;
  free.prompt = prompt_of(10, 1);
  bound.prompt = prompt_of(20, 2);
  bound.grammar = "root ::= (\"yes\" | \"no\")";
  bitnet_request* const a = submit(free);
  bitnet_request* const b = submit(bound);
  const auto kept = read(b).at(0);
  EXPECT_TRUE(kept.text == "yes" || kept.text == "no") << kept.text;
  EXPECT_EQ(read(a).at(0).tokens, alone(free));
}

TEST_F(scheduler, tells_log_probabilities) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  wish w;
  w.prompt = prompt_of(10, 2);
  w.logprobs = 1;
  w.n_top = 5;
  const auto got = read(submit(w)).at(0);
  ASSERT_EQ(got.tokens.size(), 12U);
  for (std::size_t i = 0; i < got.tokens.size(); ++i) {
    ASSERT_EQ(got.top[i].size(), 5U);
    EXPECT_EQ(got.top[i][0].token, got.tokens[i]);  // greedy
    EXPECT_EQ(got.top[i][0].logprob, got.logprobs[i]);
    double sum = 0;
    for (const bitnet_logprob& p : got.top[i]) sum += std::exp(double{p.logprob});
    EXPECT_LE(sum, 1.000001);
    EXPECT_GT(sum, 0.0);
  }
}

TEST_F(scheduler, cancels_while_it_generates) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  std::map<uint32_t, answer> all;
  bitnet_request* const r = begin_endless(all);
  bitnet_request_cancel(r);
  while (take(r, all)) {
  }
  EXPECT_EQ(all.at(0).end.stop_reason, BITNET_STOP_CANCELLED);
  expect_no_blocks();
}

TEST_F(scheduler, waits_for_a_slow_reader) {
  auto o = defaults();
  o.event_capacity = 3;
  ASSERT_EQ(open(o), BITNET_OK) << error_.message;
  wish slow, quick;
  slow.prompt = prompt_of(5, 1);
  slow.max_tokens = 40;
  quick.prompt = prompt_of(6, 2);
  bitnet_request* const r = submit(slow);
  EXPECT_EQ(read(submit(quick)).at(0).tokens, alone(quick));  // nobody else waits
  EXPECT_EQ(read(r).at(0).tokens, alone(slow));
}

TEST_F(scheduler, fails_a_request_whose_reader_has_gone) {
  auto o = defaults();
  o.event_capacity = 2;
  o.reader_timeout_ms = 50;
  ASSERT_EQ(open(o), BITNET_OK) << error_.message;
  wish w;
  w.prompt = prompt_of(5, 1);
  w.max_tokens = 40;
  bitnet_request* const r = submit(w);
  while (report()["choices"]["failed"] == 0) poll(nullptr, 0, 5);
  const auto got = read(r).at(0);
  EXPECT_EQ(got.end.kind, BITNET_EVENT_FAILED);
  EXPECT_EQ(got.end.status, BITNET_TIMEOUT) << got.message;
  EXPECT_EQ(got.tokens.size(), 2U);
}

TEST_F(scheduler, tells_an_event_loop) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  pollfd fd{bitnet_scheduler_descriptor(scheduler_), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 0), 0);
  bitnet_request* ready = nullptr;
  EXPECT_EQ(bitnet_scheduler_wait(scheduler_, 0, &ready, nullptr), BITNET_TIMEOUT);
  std::map<bitnet_request*, std::map<uint32_t, answer>> all;
  for (uint32_t i = 0; i < 3; ++i) {
    wish w;
    w.prompt = prompt_of(5 + i, i);
    all[submit(w)];
  }
  for (int ended = 0; ended < 3;) {
    ASSERT_EQ(poll(&fd, 1, static_cast<int>(patience_ms)), 1);
    ASSERT_EQ(bitnet_scheduler_wait(scheduler_, 0, &ready, nullptr), BITNET_OK);
    ASSERT_TRUE(all.contains(ready));
    ASSERT_TRUE(take(ready, all[ready]));
    if (all[ready].at(0).end.kind != 0) ++ended;
  }
  EXPECT_EQ(poll(&fd, 1, 0), 0);
  for (const auto& [r, got] : all) EXPECT_EQ(got.at(0).tokens.size(), 12U);
}

// A loop that leaves a request's events where they are learns of the next request all the same.
TEST_F(scheduler, tells_an_event_loop_that_watches_for_edges) {
  auto o = defaults();
  o.event_capacity = 2;
  ASSERT_EQ(open(o), BITNET_OK) << error_.message;
  const int watch = epoll_create1(EPOLL_CLOEXEC);
  epoll_event e{.events = EPOLLIN | EPOLLET, .data = {}};
  ASSERT_EQ(epoll_ctl(watch, EPOLL_CTL_ADD, bitnet_scheduler_descriptor(scheduler_), &e), 0);
  wish slow, quick;
  slow.prompt = prompt_of(5, 1);
  slow.max_tokens = 40;
  quick.prompt = prompt_of(6, 2);
  bitnet_request* const unread = submit(slow);
  bitnet_request* ready = nullptr;
  ASSERT_EQ(epoll_wait(watch, &e, 1, static_cast<int>(patience_ms)), 1);
  ASSERT_EQ(bitnet_scheduler_wait(scheduler_, 0, &ready, nullptr), BITNET_OK);
  EXPECT_EQ(ready, unread);
  while (report()["paused"] == 0) poll(nullptr, 0, 5);
  EXPECT_EQ(epoll_wait(watch, &e, 1, 0), 0);  // of this one there is no more to tell
  bitnet_request* const read = submit(quick);
  std::map<uint32_t, answer> got;
  while (got[0].end.kind == 0) {
    ASSERT_EQ(epoll_wait(watch, &e, 1, static_cast<int>(patience_ms)), 1);
    ASSERT_EQ(bitnet_scheduler_wait(scheduler_, 0, &ready, nullptr), BITNET_OK);
    if (ready == unread) {
      ASSERT_EQ(bitnet_scheduler_wait(scheduler_, 0, &ready, nullptr), BITNET_OK);
    }
    bitnet_event event{};
    event.struct_size = sizeof event;
    while (bitnet_request_next(read, 0, &event, nullptr) == BITNET_OK)
      if (event.kind != BITNET_EVENT_TEXT) got[0].end = event;
  }
  EXPECT_EQ(got[0].end.kind, BITNET_EVENT_END);
  EXPECT_EQ(got[0].end.n_generated, 12U);
  close(watch);
}

TEST_F(scheduler, refuses_what_it_cannot_run) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  bitnet_request* r = nullptr;
  wish w;
  EXPECT_EQ(try_submit(w, &r), BITNET_INVALID_ARGUMENT) << error_.message;
  w.prompt = {1'000'000};
  EXPECT_EQ(try_submit(w, &r), BITNET_INVALID_ARGUMENT) << error_.message;
  w.prompt = prompt_of(600, 1);
  EXPECT_EQ(try_submit(w, &r), BITNET_CONTEXT_FULL) << error_.message;
  EXPECT_NE(std::string(error_.message).find("512"), std::string::npos) << error_.message;
  w.prompt = prompt_of(6, 1);
  w.n_choices = 1'000'000;
  EXPECT_EQ(try_submit(w, &r), BITNET_INVALID_ARGUMENT) << error_.message;
  w.n_choices = 1;
  w.logprobs = 1;
  w.n_top = 1000;
  EXPECT_EQ(try_submit(w, &r), BITNET_INVALID_ARGUMENT) << error_.message;
  w.logprobs = w.n_top = 0;
  w.grammar = "root ::= ";
  EXPECT_EQ(try_submit(w, &r), BITNET_INVALID_ARGUMENT) << error_.message;
  EXPECT_EQ(r, nullptr);
}

TEST_F(scheduler, ends_what_runs_when_it_is_closed) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  std::map<uint32_t, answer> all;
  bitnet_request* const r = begin_endless(all);
  bitnet_scheduler_close(scheduler_);
  scheduler_ = nullptr;
  while (take(r, all)) {
  }
  EXPECT_EQ(all.at(0).end.kind, BITNET_EVENT_FAILED);
  EXPECT_EQ(all.at(0).end.status, BITNET_CANCELLED) << all.at(0).message;
  bitnet_request_cancel(r);  // of a scheduler that is gone: nothing
}

TEST_F(scheduler, goes_on_with_another_copy_of_its_backend) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  std::vector<wish> wishes(6);
  std::vector<bitnet_request*> all;
  for (uint32_t i = 0; i < wishes.size(); ++i) {
    wishes[i].prompt = prompt_of(20 + i * 30, i);
    wishes[i].max_tokens = 60;
    all.push_back(submit(wishes[i]));
  }
  bitnet_reload_options o;
  bitnet_reload_defaults(&o, sizeof o);
  o.policy = BITNET_RELOAD_RECOMPUTE;
  o.force = 1;
  error_ = blank_error();
  ASSERT_EQ(bitnet_backend_reload(demo_.runtime, device().c_str(), &o, &error_), BITNET_OK)
      << error_.message;
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(read(all[i]).at(0).tokens, alone(wishes[i])) << "request " << i;
  EXPECT_EQ(report()["moves"], 1);
}

}  // namespace
