// Many requests at once, through bitnet.h: each gets the text that it gets alone.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "many_requests.hpp"
#include "tolerances.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the requests

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

// The mean log probability of each answer is known from a request that delivers all of them.
TEST_F(scheduler, delivers_the_best_of_several_answers) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  wish w;
  w.prompt = prompt_of(70, 1);
  w.temperature = 1.2F;
  w.n_choices = 6;
  w.logprobs = 1;
  std::map<uint32_t, answer> all = read(submit(w));
  ASSERT_EQ(all.size(), 6U);
  std::vector<std::pair<double, uint32_t>> ranked;  // minus the mean, and which
  for (const auto& [i, one] : all) {
    double sum = 0;
    for (const float p : one.logprobs) sum += p;
    ranked.emplace_back(-sum / static_cast<double>(one.logprobs.size()), i);
    const double mean = -ranked.back().first;
    EXPECT_NEAR(one.end.mean_logprob, mean, mean_logprob_tolerance(mean));
    EXPECT_EQ(one.end.candidate, i);
  }
  std::ranges::sort(ranked);
  w.best_of = 6;
  w.logprobs = 0;
  for (const uint32_t n : {1U, 3U}) {
    w.n_choices = n;
    bitnet_request* const r = submit(w);
    std::map<uint32_t, answer> best;
    while (take(r, best))
      for (uint32_t i = 0; i + 1 < best.size(); ++i)
        EXPECT_NE(best.at(i).end.kind, 0U) << "one comes behind the other";
    ASSERT_EQ(best.size(), n);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t which = ranked[i].second;
      EXPECT_EQ(best.at(i).tokens, all.at(which).tokens);
      EXPECT_EQ(best.at(i).text, all.at(which).text);
      EXPECT_EQ(best.at(i).end.candidate, which);
      EXPECT_EQ(best.at(i).tokens, alone(w, which)) << "its seed is that of its number";
      EXPECT_EQ(best.at(i).end.mean_logprob, all.at(which).end.mean_logprob);
    }
  }
  expect_no_blocks();
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

TEST_F(scheduler, gives_log_probabilities) {
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
    EXPECT_LE(sum, 1 + probabilities_tolerance(got.top[i].size()));
    EXPECT_GT(sum, 0.0);
  }
}

// Rows of a session that has all of them give the same, also for a prompt that is known already and
// for a reader that takes few events at a time.
TEST_F(scheduler, gives_log_probabilities_of_the_prompt) {
  auto o = defaults();
  o.event_capacity = 3;
  ASSERT_EQ(open(o), BITNET_OK) << error_.message;
  wish w;
  w.prompt = prompt_of(150, 3);
  w.prompt_logprobs = 1;
  w.n_prompt_top = 2;
  const uint64_t n_vocab = [&] {
    bitnet_model_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(bitnet_model_describe(demo_.model, &info, nullptr), BITNET_OK);
    return info.n_vocab;
  }();
  std::vector<float> rows(w.prompt.size() * n_vocab);
  bitnet_session_options of;
  bitnet_session_defaults(&of, sizeof of);
  of.deterministic = 1;
  bitnet_session* s = nullptr;
  ASSERT_EQ(bitnet_session_open(demo_.model, &of, &s, &error_), BITNET_OK) << error_.message;
  ASSERT_EQ(bitnet_session_eval(s, w.prompt.data(), w.prompt.size(), 1, rows.data(), rows.size(),
                                &error_),
            BITNET_OK)
      << error_.message;
  bitnet_session_close(s);
  for (const int32_t max_tokens : {12, 0}) {
    w.max_tokens = max_tokens;
    const answer got = read(submit(w)).at(0);
    EXPECT_EQ(got.end.kind, BITNET_EVENT_END) << got.message;
    EXPECT_EQ(got.tokens, max_tokens == 0 ? std::vector<bitnet_token>{} : alone(w));
    EXPECT_EQ(got.end.n_cached, 0U);
    ASSERT_EQ(got.prompt, w.prompt);
    EXPECT_FALSE(got.prompt_text.empty());
    EXPECT_EQ(got.prompt_logprobs[0], 0);
    EXPECT_TRUE(got.prompt_top[0].empty());
    for (std::size_t i = 1; i < w.prompt.size(); ++i) {
      const float* row = rows.data() + (i - 1) * n_vocab;
      const double most = *std::max_element(row, row + n_vocab);
      double sum = 0;
      for (uint64_t j = 0; j < n_vocab; ++j) sum += std::exp(row[j] - most);
      const double expected = row[w.prompt[i]] - most - std::log(sum);
      EXPECT_NEAR(got.prompt_logprobs[i], expected, logprob_tolerance(expected, n_vocab)) << i;
      ASSERT_EQ(got.prompt_top[i].size(), 2U);
      EXPECT_EQ(row[got.prompt_top[i][0].token], static_cast<float>(most));
    }
  }
  w.n_prompt_top = 21;
  bitnet_request* none = nullptr;
  EXPECT_EQ(try_submit(w, &none), BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("at most 20"), std::string::npos) << error_.message;
}

// What a request wants of sampling is that of a session: the stages, biases, DRY and its breakers.
TEST_F(scheduler, samples_as_a_session_does) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  const bitnet_str breakers[] = {{".", 1}, {"\n", 1}};
  const bitnet_logit_bias bias{7, -4.0F};
  const std::function<void(bitnet_sampling&)> changes[] = {
      [](auto& s) { s.top_n_sigma = 1; },
      [](auto& s) { s.typical_p = 0.4F; },
      [](auto& s) { s.xtc_probability = 0.5F, s.xtc_threshold = 0.05F; },
      [](auto& s) { s.dynatemp_range = 0.7F, s.dynatemp_exponent = 2; },
      [](auto& s) { s.mirostat = 1; },
      [](auto& s) { s.mirostat = 2, s.mirostat_tau = 2; },
      [&](auto& s) {
        s.dry_multiplier = 1, s.dry_penalty_last_n = -1;
        s.dry_breakers = breakers, s.n_dry_breakers = 2;
      },
      [&](auto& s) {
        s.logit_bias = &bias, s.n_logit_bias = 1, s.logit_bias_size = sizeof bias;
        s.ignore_eos = 0, s.dry_multiplier = 2, s.n_dry_breakers = 0;
      }};
  wish w;
  w.prompt = prompt_of(40, 5);
  w.temperature = 1.2F;
  w.max_tokens = 60;
  std::set<std::vector<bitnet_token>> all;
  for (const auto& change : changes) {
    w.change = change;
    const auto tokens = read(submit(w)).at(0).tokens;
    EXPECT_EQ(tokens, alone(w));
    all.insert(tokens);
  }
  EXPECT_GE(all.size(), std::size(changes) - 1) << "they change the text";
}

TEST_F(scheduler, rejects_invalid_sequence_breakers) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  const std::string long_text(41, 'a');
  const std::vector<bitnet_str> many(33, {"a", 1});
  const struct {
    const bitnet_str* list;
    uint32_t n;
    const char* words;
  } rows[] = {{nullptr, 2, "dry_breakers is NULL, with a count of 2"},
              {many.data(), 33, "dry_breakers has 33 texts; at most 32 are possible"}};
  const bitnet_str too_long{long_text.data(), long_text.size()}, empty{"", 0}, lost{nullptr, 3};
  wish w;
  w.prompt = prompt_of(5, 1);
  const auto message_of = [&](const bitnet_str* list, uint32_t n) {
    w.change = [=](bitnet_sampling& s) {
      s.dry_multiplier = 1, s.dry_breakers = list, s.n_dry_breakers = n;
    };
    bitnet_request* none = nullptr;
    EXPECT_EQ(try_submit(w, &none), BITNET_INVALID_ARGUMENT);
    return std::string(error_.message);
  };
  for (const auto& r : rows)
    EXPECT_NE(message_of(r.list, r.n).find(r.words), std::string::npos) << error_.message;
  EXPECT_NE(message_of(&too_long, 1).find("has 41 bytes; expected 1 to 40"), std::string::npos);
  EXPECT_NE(message_of(&empty, 1).find("has 0 bytes; expected 1 to 40"), std::string::npos);
  EXPECT_NE(message_of(&lost, 1).find("is NULL, with a count of 3"), std::string::npos);
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

// The backend is asked to end a step of 8000 tokens at the deadline of its only request. A machine
// may be so busy that the deadline passes before the step begins: then it is tried again.
// Its pool has what the scheduler reserves for one sequence, however a window lies to its blocks.
TEST_F(scheduler, has_blocks_for_a_sequence_of_any_window) {
  for (const uint32_t window : {1U, 2U, 3U, 64U, 65U, 66U, 128U}) {
    change_ = [window](bitnet_session_options& o) {
      o.window = window, o.window_keep = window / 2;
    };
    auto one_at_a_time = defaults();
    one_at_a_time.max_sequences = 1;
    ASSERT_EQ(open(one_at_a_time), BITNET_OK) << error_.message;
    wish w;
    w.prompt = prompt_of(20, 3);
    w.max_tokens = 300;
    bitnet_request* request = nullptr;
    ASSERT_EQ(try_submit(w, &request), BITNET_OK) << window << ": " << error_.message;
    EXPECT_EQ(read(request).at(0).tokens.size(), 300U) << window;
    bitnet_request_close(request);
    bitnet_scheduler_close(std::exchange(scheduler_, nullptr));
  }
}

TEST_F(scheduler, ends_a_long_step_that_no_request_needs) {
  n_batch_ = 8192;
  change_ = [](bitnet_session_options& o) { o.n_context = 8192; };
  auto one_at_a_time = defaults();
  one_at_a_time.max_sequences = 1;
  ASSERT_EQ(open(one_at_a_time), BITNET_OK) << error_.message;
  wish late;
  late.prompt = prompt_of(8000, 3);
  for (uint32_t ms = 5; ms < 2000 && report()["cancelled_steps"] == 0; ms *= 2) {
    late.deadline_ms = ms;
    late.prompt.front() = static_cast<bitnet_token>(ms % 100);  // not known from the try before
    const answer got = read(submit(late)).at(0);
    EXPECT_EQ(got.end.status, BITNET_TIMEOUT) << got.message;
    EXPECT_EQ(got.end.n_generated, 0U);
    expect_no_blocks();
  }
  EXPECT_GT(report()["cancelled_steps"], 0);
  EXPECT_EQ(report()["failed_steps"], 0);
  wish next;
  next.prompt = prompt_of(300, 2);
  EXPECT_EQ(read(submit(next)).at(0).tokens, alone(next)) << "by the blocks that were dropped";
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
  EXPECT_EQ(read(submit(quick)).at(0).tokens, alone(quick));  // no other request waits
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

TEST_F(scheduler, wakes_an_event_loop) {
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
  EXPECT_EQ(epoll_wait(watch, &e, 1, 0), 0);  // this one has no further events
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

TEST_F(scheduler, rejects_requests_that_it_cannot_run) {
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
  w.n_choices = 3;
  w.best_of = 2;
  EXPECT_EQ(try_submit(w, &r), BITNET_INVALID_ARGUMENT) << error_.message;
  EXPECT_NE(std::string(error_.message).find("best_of 2 is less than n_choices 3"),
            std::string::npos)
      << error_.message;
  w.best_of = 1'000'000;
  EXPECT_EQ(try_submit(w, &r), BITNET_INVALID_ARGUMENT) << error_.message;
  w.best_of = 0;
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

// Numbers alone: a row has no more members than these.
TEST_F(scheduler, a_report_has_a_row_of_each_sequence) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  EXPECT_EQ(report()["sequences"], nlohmann::json::array());
  EXPECT_EQ(report()["slots"], report()["max_sequences"]);
  std::map<uint32_t, answer> got;
  bitnet_request* const r = begin_endless(got);
  ASSERT_TRUE(take(r, got));  // by the second token the numbers of the first are known
  const nlohmann::json rows = report()["sequences"];
  ASSERT_EQ(rows.size(), 1U) << rows;
  const nlohmann::json& row = rows[0];
  const auto generated = row["generated"].get<uint64_t>();
  const nlohmann::json wanted = {
      {"slot", 0},          {"request", row["request"]}, {"choice", 0},
      {"prompt", 5},        {"state", row["state"]},     {"known", 0},
      {"computed", 5},      {"generated", generated},    {"remaining", 512 - 5 - generated},
      {"speculates", false}};
  EXPECT_EQ(row, wanted);
  EXPECT_GE(generated, 1U);
  EXPECT_TRUE(row["state"] == "decoding" || row["state"] == "paused") << row;
  bitnet_request_cancel(r);
  while (take(r, got)) {
  }
  EXPECT_EQ(report()["sequences"], nlohmann::json::array()) << "its row goes before its end comes";
}

}  // namespace
