#pragma once
// Requests of a scheduler of the demo model, through bitnet.h, and what each gives alone.

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "demo_session.hpp"

namespace bitnet::test {

inline constexpr uint32_t patience_ms = 60'000;

struct answer {
  std::vector<bitnet_token> tokens;
  std::string text;
  std::vector<float> logprobs;
  std::vector<std::vector<bitnet_logprob>> top;
  std::vector<bitnet_token> prompt;  // as PROMPT events have it
  std::string prompt_text;
  std::vector<float> prompt_logprobs;
  std::vector<std::vector<bitnet_logprob>> prompt_top;
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
  uint32_t best_of = 0;
  int32_t priority = 0;
  uint32_t deadline_ms = 0;
  const char* grammar = nullptr;
  const bitnet_speculation* speculation = nullptr;
  uint32_t prompt_logprobs = 0, n_prompt_top = 0;
  std::function<void(bitnet_sampling&)> change = nullptr;  // of what samples its text
  int32_t reasoning_budget = -1;                           // of thinking that the prompt opened
  uint32_t receipt = 0;
};

// As demo_session chooses it.
inline std::string device() {
  const char* const named = std::getenv("BITNET_TEST_DEVICE");
  return named != nullptr ? named : "cpu";
}

// A prompt of `n` tokens that no other `kind` has.
inline std::vector<bitnet_token> prompt_of(uint32_t n, uint32_t kind) {
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

  // Another model in place of the demo model. No scheduler is open.
  void replace_model(const std::filesystem::path& file) {
    bitnet_session_close(demo_.session);
    bitnet_model_close(demo_.model);
    demo_.session = nullptr;
    demo_.model = nullptr;
    error_ = blank_error();
    ASSERT_EQ(bitnet_model_open(demo_.runtime, file.c_str(), nullptr, &demo_.model, &error_),
              BITNET_OK)
        << error_.message;
  }

  bitnet_status open(bitnet_scheduler_options o) {
    bitnet_session_options of;
    bitnet_session_defaults(&of, sizeof of);
    of.n_context = 512;
    of.n_batch = n_batch_;
    of.deterministic = 1;
    if (change_) change_(of);
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
    if (w.change) w.change(s);
    return s;
  }
  static bitnet_generation generation_of(const wish& w, const bitnet_sampling& s) {
    bitnet_generation g;
    bitnet_generation_defaults(&g, sizeof g);
    g.max_tokens = w.max_tokens;
    g.sampling = &s;
    if (w.grammar != nullptr) g.grammar = {w.grammar, std::char_traits<char>::length(w.grammar)};
    g.speculation = w.speculation;
    g.reasoning_budget = w.reasoning_budget;
    g.in_reasoning = 1;
    g.reasoning_ends = {"</think>", 8};
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
    o.best_of = w.best_of;
    o.prompt_logprobs = w.prompt_logprobs;
    o.n_top_prompt_logprobs = w.n_prompt_top;
    o.priority = w.priority;
    o.deadline_ms = w.deadline_ms;
    o.receipt = w.receipt;
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
    if (e.kind == BITNET_EVENT_PROMPT) {
      EXPECT_TRUE(to.tokens.empty());
      to.prompt.push_back(e.token);
      to.prompt_text.append(e.text.data == nullptr ? "" : e.text.data, e.text.size);
      to.prompt_logprobs.push_back(e.logprob);
      to.prompt_top.emplace_back(e.top, e.top + e.n_top);
      return true;
    }
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
  std::function<void(bitnet_session_options&)> change_;  // of the sequences' options
};

}  // namespace bitnet::test
