// Shadow runs: a second backend computes rows of live texts again. It finds what it should find,
// and no text is another one with it.

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <span>
#include <sstream>
#include <thread>

#include "yard.hpp"

namespace bitnet::test {
namespace {

using nlohmann::json;

#ifdef BITNET_SANITIZED
constexpr int32_t length = 12;
#else
constexpr int32_t length = 32;
#endif
const std::string prompt = "Once upon a time there was a";

struct shadow_options : bitnet_shadow_options {
  explicit shadow_options(const char* on, float of_rows = 1, uint32_t rows = 1024)
      : bitnet_shadow_options() {
    bitnet_shadow_defaults(this, sizeof(bitnet_shadow_options));
    device = on;
    share = of_rows;
    waiting = rows;
    sequences = &of;
  }
  shadow_options(const shadow_options&) = delete;
  shadow_options& operator=(const shadow_options&) = delete;
  bitnet_session_options of = usual();
};

class shadow {
 public:
  shadow(program& p, const shadow_options& o) {
    bitnet_error e = blank();
    if (const auto s = bitnet_shadow_open(p.model, &o, &handle, &e); s != BITNET_OK)
      throw failed_call(s, e);
  }
  shadow(const shadow&) = delete;
  shadow& operator=(const shadow&) = delete;
  ~shadow() { bitnet_shadow_close(handle); }

  void follow(conversation& c) {
    bitnet_error e = blank();
    if (const auto s = bitnet_session_set_shadow(c.handle, handle, &e); s != BITNET_OK)
      throw failed_call(s, e);
  }
  [[nodiscard]] json report() const {
    uint64_t n = 0;
    bitnet_shadow_report(handle, nullptr, 0, &n, nullptr);
    std::string text(n, '\0');
    bitnet_shadow_report(handle, text.data(), n, &n, nullptr);
    return json::parse(text);
  }
  // Once it has compared what it was offered and did not drop, or has failed.
  [[nodiscard]] json settled() const {
    while (true) {
      json r = report();
      const auto& rows = r["rows"];
      const uint64_t ended = rows["compared"].get<uint64_t>() + rows["dropped"].get<uint64_t>();
      if (r["state"] == "failed" || ended == rows["offered"]) return r;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  bitnet_shadow* handle = nullptr;
};

std::vector<bitnet_token> tokens_of(program& p, const std::string& text) {
  uint64_t n = 0;
  const bitnet_str all = {text.data(), text.size()};
  bitnet_tokenize(p.model, all, BITNET_TOKENIZE_MODEL_BOS, nullptr, 0, &n, nullptr);
  std::vector<bitnet_token> ids(n);
  bitnet_tokenize(p.model, all, BITNET_TOKENIZE_MODEL_BOS, ids.data(), n, &n, nullptr);
  return ids;
}

// Tokens and text of a run by a seed, with the largest logits asked for as a list.
std::vector<bitnet_token> sampled(program& p, conversation& c, uint32_t seed,
                                  bool with_draft = false) {
  greedy how(length);
  how.sampling.temperature = 0.9F;
  how.sampling.top_k = 40;
  how.sampling.seed = seed;
  bitnet_speculation ahead;
  bitnet_speculation_defaults(&ahead, sizeof ahead);
  ahead.type = BITNET_SPECULATION_NGRAM;
  ahead.ngram_size = 1;
  if (with_draft) how.generation.speculation = &ahead;
  std::vector<bitnet_token> out(length);
  how.generation.out_tokens = out.data();
  how.generation.out_capacity = out.size();
  const auto ids = tokens_of(p, prompt);
  bitnet_generation_result r{};
  r.struct_size = sizeof r;
  bitnet_error e = blank();
  if (const auto s = bitnet_generate(c.handle, ids.data(), ids.size(), &how.generation, &r, &e);
      s != BITNET_OK)
    throw failed_call(s, e);
  out.resize(r.n_generated);
  return out;
}

class shadow_runs : public testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
    add("cpu", BITNET_CPU_PLUGIN);
    add("plain", BITNET_PLAIN_PLUGIN);
    add("odd", BITNET_SHADOW_ODD_PLUGIN);
    add("wrong", BITNET_SHADOW_WRONG_PLUGIN);
    add("fragile", BITNET_FRAGILE_PLUGIN);
    program p(yard_, "cpu");
    conversation c(p);
    undisturbed_ = c.generate(prompt, length);
    ASSERT_GT(undisturbed_.size(), static_cast<std::size_t>(length));
  }
  void TearDown() override { unsetenv("BITNET_FRAGILE_STEPS"); }
  void add(const std::string& name, const char* plugin) {
    yard_.install(name, read(plugin));
    yard_.describe(name);
  }

  yard yard_;
  std::string undisturbed_;
};

TEST_F(shadow_runs, the_same_backend_computes_the_same_bytes) {
  program p(yard_, "cpu");
  conversation c(p);
  shadow s(p, shadow_options("cpu"));
  s.follow(c);
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  const json r = s.settled();
  EXPECT_EQ(r["state"], "running") << r;
  EXPECT_EQ(r["rows"]["seen"], length) << r;
  EXPECT_EQ(r["rows"]["offered"], length) << r;
  EXPECT_EQ(r["rows"]["compared"], length) << r;
  EXPECT_EQ(r["same_bytes"], length) << r;
  EXPECT_EQ(r["same_top"], length) << r;
  EXPECT_EQ(r["kl"]["mean"], 0) << r;
  EXPECT_EQ(r["kl"]["max"], 0) << r;
  EXPECT_EQ(r["kl"]["undefined"], 0) << r;
  EXPECT_EQ(r["max_abs"], 0) << r;
  EXPECT_EQ(r["device"]["selected"], "cpu:0") << r;
  EXPECT_FALSE(r["device"]["build_id"].get<std::string>().empty()) << r;
  EXPECT_GT(r["offering_ns"]["sum"], 0) << r;
  EXPECT_LE(r["offering_ns"]["longest"], r["offering_ns"]["sum"]) << r;
}

// Threads of this process by their niceness.
uint32_t threads_of_niceness(long wanted) {
  uint32_t out = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string stat;
    std::getline(std::ifstream(thread.path() / "stat"), stat);
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    std::string one;
    for (int i = 0; i < 17; ++i) fields >> one;  // the 19th of proc(5)
    out += std::strtol(one.c_str(), nullptr, 10) == wanted ? 1 : 0;
  }
  return out;
}

TEST_F(shadow_runs, compute_with_threads_of_their_own_and_the_lowest_priority) {
  program p(yard_, "cpu");
  conversation c(p);
  EXPECT_EQ(threads_of_niceness(19), 0U);
  {
    shadow s(p, shadow_options("cpu"));
    s.follow(c);
    EXPECT_EQ(c.generate(prompt, length), undisturbed_);
    EXPECT_EQ(s.settled()["rows"]["compared"], length);
    EXPECT_EQ(threads_of_niceness(19), 2U) << "as many as the runtime computes with";
  }
  EXPECT_EQ(threads_of_niceness(19), 0U);
}

// The tests' own reference promises the cpu backend's bits.
TEST_F(shadow_runs, another_backend_of_the_same_arithmetic_gives_the_same_bytes) {
  program p(yard_, "cpu");
  conversation c(p);
  shadow s(p, shadow_options("plain"));
  s.follow(c);
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  const json r = s.settled();
  EXPECT_EQ(r["rows"]["compared"], length) << r;
  EXPECT_EQ(r["same_bytes"], length) << r;
  EXPECT_EQ(r["device"]["selected"], "plain:0") << r;
  EXPECT_EQ(r["device"]["requested"], "plain") << r;
}

// What two devices compute of the rows of a text, each in a session without a shadow; KL by its
// definition.
struct by_hand {
  by_hand(program& p, const char* device) {
    std::vector<bitnet_token> ids = tokens_of(p, prompt);
    const std::size_t n_prompt = ids.size();
    greedy how(length);
    std::vector<bitnet_token> more(length);
    how.generation.out_tokens = more.data();
    how.generation.out_capacity = more.size();
    conversation live(p), other(p);
    bitnet_generation_result done{};
    done.struct_size = sizeof done;
    EXPECT_EQ(bitnet_generate(live.handle, ids.data(), n_prompt, &how.generation, &done, nullptr),
              BITNET_OK);
    ids.insert(ids.end(), more.begin(), more.end() - 1);
    live.forget();
    other.prefer(device);
    const std::vector<float> here = logits(p, live, ids), there = logits(p, other, ids);
    const std::size_t width = here.size() / ids.size();
    for (std::size_t row = n_prompt - 1; row < ids.size(); ++row) {
      const auto kl = divergence(std::span(here).subspan(row * width, width),
                                 std::span(there).subspan(row * width, width));
      mean += kl / length;
      if (kl > most) worst = row;
      most = std::max(most, kl);
    }
  }
  static std::vector<float> logits(program& p, conversation& c,
                                   const std::vector<bitnet_token>& ids) {
    bitnet_model_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(bitnet_model_describe(p.model, &info, nullptr), BITNET_OK);
    std::vector<float> out(ids.size() * info.n_vocab);
    EXPECT_EQ(
        bitnet_session_eval(c.handle, ids.data(), ids.size(), 1, out.data(), out.size(), nullptr),
        BITNET_OK);
    return out;
  }
  static double divergence(std::span<const float> live, std::span<const float> other) {
    long double of_live = 0, of_other = 0, kl = 0;
    for (const float x : live) of_live += std::exp(static_cast<long double>(x));
    for (const float x : other) of_other += std::exp(static_cast<long double>(x));
    for (std::size_t i = 0; i < live.size(); ++i) {
      const long double p = std::exp(static_cast<long double>(live[i])) / of_live;
      kl += p * std::log(p * of_other / std::exp(static_cast<long double>(other[i])));
    }
    return static_cast<double>(kl);
  }

  double mean = 0, most = 0;
  std::size_t worst = 0;
};

TEST_F(shadow_runs, find_a_backend_that_computes_something_else) {
  program p(yard_, "cpu");
  for (const char* const device : {"wrong", "odd"}) {
    conversation c(p);
    shadow s(p, shadow_options(device));
    s.follow(c);
    EXPECT_EQ(c.generate(prompt, length), undisturbed_);
    const json r = s.settled();
    const by_hand expected(p, device);
    EXPECT_EQ(r["rows"]["compared"], length) << r;
    EXPECT_EQ(r["same_bytes"], 0) << r;
    EXPECT_GT(expected.most, 1e-6);
    EXPECT_NEAR(r["kl"]["max"].get<double>(), expected.most, 1e-9 * (1 + expected.most)) << r;
    EXPECT_NEAR(r["kl"]["mean"].get<double>(), expected.mean, 1e-9 * (1 + expected.mean)) << r;
    EXPECT_EQ(r["worst"]["kl"], r["kl"]["max"]) << r;
    EXPECT_EQ(r["worst"]["position"], expected.worst) << r;
    EXPECT_EQ(r["worst"]["source"], 1) << r;
  }
}

// 100 is added to one logit, and nothing else is wrong.
TEST_F(shadow_runs, find_one_wrong_logit) {
  program p(yard_, "cpu");
  conversation c(p);
  shadow s(p, shadow_options("odd"));
  s.follow(c);
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  const json r = s.settled();
  EXPECT_EQ(r["same_top"], 0) << r;
  EXPECT_EQ(r["worst"]["shadow_token"], 7) << r;
  EXPECT_NE(r["worst"]["live_token"], 7) << r;
  EXPECT_NEAR(r["max_abs"].get<double>(), 100, 1e-4) << r;
}

// Attention is part of a composite of the cpu backend, as is the head.
TEST_F(shadow_runs, find_the_first_op_that_differs) {
  program p(yard_, "cpu");
  for (const auto& [device, op] : {std::pair("wrong", "attn_out"), std::pair("odd", "lm_head")}) {
    conversation c(p);
    shadow s(p, shadow_options(device));
    bitnet_error e = blank();
    EXPECT_EQ(bitnet_shadow_find_op(s.handle, &e), BITNET_NOT_FOUND) << "nothing is compared yet";
    s.follow(c);
    EXPECT_EQ(c.generate(prompt, length), undisturbed_);
    EXPECT_FALSE(s.settled().contains("first_op"));
    ASSERT_EQ(bitnet_shadow_find_op(s.handle, &e), BITNET_OK) << e.message;
    const json r = s.report();
    EXPECT_EQ(r["first_op"]["found"], true) << r;
    EXPECT_EQ(r["first_op"]["op"], op) << r;
    EXPECT_EQ(r["first_op"]["tokens"], r["worst"]["position"].get<uint64_t>() + 1) << r;
    EXPECT_LT(r["first_op"]["index"], r["first_op"]["of"]) << r;
    EXPECT_GT(r["first_op"]["max_abs"], 0) << r;
  }
}

TEST_F(shadow_runs, a_share_of_the_rows) {
  program p(yard_, "cpu");
  conversation c(p);
  shadow s(p, shadow_options("cpu", 0.25F));
  s.follow(c);
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  const json r = s.settled();
  EXPECT_EQ(r["rows"]["seen"], length) << r;
  EXPECT_EQ(r["share"], 0.25) << r;
  EXPECT_EQ(r["rows"]["offered"], length / 4) << r;
  EXPECT_EQ(r["rows"]["compared"], length / 4) << r;
  EXPECT_EQ(r["same_bytes"], length / 4) << r;
}

// Rows are listed without a shadow and whole with one, on the steps that are offered: the same
// tokens come, also behind drafts.
TEST_F(shadow_runs, sampled_tokens_are_the_same_with_and_without) {
  program p(yard_, "cpu");
  for (const bool with_draft : {false, true})
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      conversation without(p), with(p);
      const auto expected = sampled(p, without, seed, with_draft);
      ASSERT_EQ(expected.size(), static_cast<std::size_t>(length));
      shadow s(p, shadow_options("cpu", seed == 3 ? 0.3F : 1));
      s.follow(with);
      EXPECT_EQ(sampled(p, with, seed, with_draft), expected) << seed << " " << with_draft;
      const json r = s.settled();
      EXPECT_GT(r["rows"]["compared"], 0) << r;
      EXPECT_EQ(r["same_bytes"], r["rows"]["compared"]) << r;
    }
}

TEST_F(shadow_runs, rows_for_which_there_is_no_room_are_dropped_and_counted) {
  program p(yard_, "cpu");
  conversation c(p);
  shadow s(p, shadow_options("plain", 1, 1));  // slower than the cpu backend by far
  s.follow(c);
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  const json r = s.settled();
  EXPECT_EQ(r["rows"]["offered"], length) << r;
  EXPECT_GT(r["rows"]["dropped"], 0) << r;
  EXPECT_GT(r["rows"]["compared"], 0) << r;
  EXPECT_EQ(r["same_bytes"], r["rows"]["compared"]) << r;
}

TEST_F(shadow_runs, a_lost_device_of_the_shadow_ends_the_shadow_alone) {
  setenv("BITNET_FRAGILE_STEPS", "4", 1);
  program p(yard_, "cpu");
  conversation c(p);
  shadow s(p, shadow_options("fragile"));
  s.follow(c);
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  const json r = s.settled();
  EXPECT_EQ(r["state"], "failed") << r;
  EXPECT_NE(r["error"].get<std::string>().find("fell off the bus"), std::string::npos) << r;
  EXPECT_EQ(r["rows"]["compared"], 4) << r;
  EXPECT_EQ(r["same_bytes"], 4) << r;
  EXPECT_NE(p.log().find("shadow: it ended, and texts go on without"), std::string::npos)
      << p.log();
  const uint64_t seen = r["rows"]["seen"];
  c.forget();
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  EXPECT_EQ(s.report()["rows"]["seen"], seen) << "a shadow that ended is asked for no row";
  EXPECT_FALSE(c.report().contains("moves"));
}

TEST_F(shadow_runs, a_text_goes_on_when_its_shadow_is_taken_away_or_closed) {
  program p(yard_, "cpu");
  conversation c(p);
  shadow s(p, shadow_options("cpu"));
  s.follow(c);
  EXPECT_EQ(c.generate(prompt, length,
                       [&](int i) {
                         if (i == 4) {
                           EXPECT_EQ(bitnet_session_set_shadow(c.handle, nullptr, nullptr),
                                     BITNET_OK);
                         }
                       }),
            undisturbed_);
  EXPECT_LT(s.settled()["rows"]["seen"], length);
  c.forget();
  auto other = std::make_unique<shadow>(p, shadow_options("cpu"));
  other->follow(c);
  EXPECT_EQ(c.generate(prompt, length,
                       [&](int i) {
                         if (i == 4) other.reset();
                       }),
            undisturbed_);
}

TEST_F(shadow_runs, what_cannot_be_compared_is_rejected) {
  program p(yard_, "cpu");
  const auto rejected = [&](const shadow_options& o) {
    bitnet_shadow* made = nullptr;
    bitnet_error e = blank();
    const bitnet_status s = bitnet_shadow_open(p.model, &o, &made, &e);
    bitnet_shadow_close(made);
    return std::pair(s, std::string(e.message));
  };
  EXPECT_EQ(rejected(shadow_options(nullptr)).first, BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(rejected(shadow_options("none such")).first, BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(rejected(shadow_options("cpu", 1.5F)).first, BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(rejected(shadow_options("cpu", -1)).first, BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(rejected(shadow_options("cpu", 1, 5000)).first, BITNET_INVALID_ARGUMENT);
  shadow_options embeddings("cpu");
  embeddings.of.embeddings = 1;
  EXPECT_NE(rejected(embeddings).second.find("embeddings"), std::string::npos);

  conversation c(p);
  const auto misfit = [&](const shadow_options& o) {
    const shadow s(p, o);
    bitnet_error e = blank();
    EXPECT_EQ(bitnet_session_set_shadow(c.handle, s.handle, &e), BITNET_INVALID_ARGUMENT);
    return std::string(e.message);
  };
  shadow_options context("cpu"), types("cpu");
  context.of.n_context = 128;
  types.of.kv_k = BITNET_KV_F32;
  EXPECT_NE(misfit(context).find("differ in n_context"), std::string::npos);
  EXPECT_NE(misfit(types).find("differ in kv_k"), std::string::npos);
  program elsewhere(yard_, "cpu");
  const shadow s(elsewhere, shadow_options("cpu"));
  EXPECT_EQ(bitnet_session_set_shadow(c.handle, s.handle, nullptr), BITNET_INVALID_ARGUMENT);
}

// ---- schedulers --------------------------------------------------------------------------------

constexpr const char* begins[] = {"Once upon a time", "The dog", "Tom and Lily went to the park",
                                  "One day"};

class requests {
 public:
  explicit requests(program& p) : program_(p) {
    const bitnet_session_options of = usual();
    bitnet_scheduler_options o;
    bitnet_scheduler_defaults(&o, sizeof o);
    o.sequences = &of;
    o.max_sequences = 4;
    bitnet_error e = blank();
    if (const auto s = bitnet_scheduler_open(p.model, &o, &handle, &e); s != BITNET_OK)
      throw failed_call(s, e);
  }
  requests(const requests&) = delete;
  requests& operator=(const requests&) = delete;
  ~requests() { bitnet_scheduler_close(handle); }

  // Of each beginning the text, of two choices each.
  std::vector<std::string> texts() {
    std::vector<bitnet_request*> all;
    for (const char* begin : begins) {
      const auto ids = tokens_of(program_, begin);
      greedy how(length);
      how.sampling.temperature = 0.8F;
      how.sampling.top_k = 20;
      how.sampling.seed = 11;
      bitnet_speculation ahead;
      bitnet_speculation_defaults(&ahead, sizeof ahead);
      ahead.type = BITNET_SPECULATION_NGRAM;
      ahead.ngram_size = 1;
      if (all.size() % 2 == 1) how.generation.speculation = &ahead;
      bitnet_request_options o;
      bitnet_request_defaults(&o, sizeof o);
      o.prompt = ids.data();
      o.n_prompt = ids.size();
      o.n_choices = 2;
      o.generation = &how.generation;
      bitnet_error e = blank();
      bitnet_request* one = nullptr;
      if (const auto s = bitnet_request_submit(handle, &o, &one, &e); s != BITNET_OK)
        throw failed_call(s, e);
      all.push_back(one);
    }
    std::vector<std::string> out(2 * all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (int ended = 0; ended < 2;) {
        bitnet_event e{};
        e.struct_size = sizeof e;
        bitnet_error why = blank();
        const auto s = bitnet_request_next(all[i], 60'000, &e, &why);
        if (s != BITNET_OK) throw failed_call(s, why);
        EXPECT_NE(e.kind, BITNET_EVENT_FAILED);
        if (e.kind == BITNET_EVENT_TEXT)
          out[2 * i + e.choice].append(e.text.data == nullptr ? "" : e.text.data, e.text.size);
        else
          ++ended;
      }
      bitnet_request_close(all[i]);
    }
    return out;
  }

  bitnet_scheduler* handle = nullptr;

 private:
  program& program_;
};

TEST_F(shadow_runs, many_sequences_of_a_scheduler) {
  program p(yard_, "cpu");
  const std::vector<std::string> expected = requests(p).texts();
  for (const float share : {1.0F, 0.3F}) {
    requests r(p);
    shadow s(p, shadow_options("cpu", share));
    bitnet_error e = blank();
    ASSERT_EQ(bitnet_scheduler_set_shadow(r.handle, s.handle, &e), BITNET_OK) << e.message;
    EXPECT_EQ(r.texts(), expected) << share;
    const json report = s.settled();
    EXPECT_EQ(report["state"], "running") << report;
    EXPECT_EQ(report["rows"]["dropped"], 0) << report;
    EXPECT_GT(report["rows"]["compared"], 0) << report;
    EXPECT_EQ(report["same_bytes"], report["rows"]["compared"]) << report;
    EXPECT_EQ(report["worst"]["source"], 1) << report;
    EXPECT_GT(report["worst"]["request"], 0) << report;
    const uint64_t seen = report["rows"]["seen"], offered = report["rows"]["offered"];
    EXPECT_EQ(offered, share == 1 ? seen : seen * 3 / 10) << report;
    ASSERT_EQ(bitnet_scheduler_set_shadow(r.handle, nullptr, &e), BITNET_OK) << e.message;
    EXPECT_EQ(r.texts(), expected) << "without it again";
  }
}

TEST_F(shadow_runs, a_scheduler_with_a_backend_that_computes_something_else) {
  program p(yard_, "cpu");
  const std::vector<std::string> expected = requests(p).texts();
  requests r(p);
  shadow s(p, shadow_options("wrong", 0.2F));
  ASSERT_EQ(bitnet_scheduler_set_shadow(r.handle, s.handle, nullptr), BITNET_OK);
  EXPECT_EQ(r.texts(), expected);
  const json report = s.settled();
  EXPECT_EQ(report["same_bytes"], 0) << report;
  EXPECT_GT(report["kl"]["mean"], 0) << report;
}

// ---- the canary of a reload --------------------------------------------------------------------

bitnet_reload_options with_canary(uint32_t rows, uint32_t wait_ms = 0) {
  bitnet_reload_options o;
  bitnet_reload_defaults(&o, sizeof o);
  o.policy = BITNET_RELOAD_MIGRATE;
  o.canary_rows = rows;
  o.canary_wait_ms = wait_ms;
  return o;
}

// Generates texts, one after another, while it lives; all must be the same.
class busy {
 public:
  explicit busy(std::function<std::string()> one)
      : thread_([one = std::move(one), this](const std::stop_token& stop) {
          do {
            texts_.push_back(one());
          } while (!stop.stop_requested());
        }) {}
  std::vector<std::string> texts() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    return texts_;
  }

 private:
  std::vector<std::string> texts_;
  std::jthread thread_;
};

TEST_F(shadow_runs, a_reload_whose_new_copy_computes_live_texts_alike_is_taken) {
  program p(yard_, "cpu");
  conversation c(p);
  busy texts([&] {
    c.forget();
    return c.generate(prompt, length);
  });
  yard_.install("cpu", rebuilt(read(BITNET_CPU_PLUGIN), 1));
  const json answer = p.reload("cpu", with_canary(10));
  for (const std::string& text : texts.texts()) EXPECT_EQ(text, undisturbed_);
  EXPECT_EQ(answer["changed"], true) << answer;
  EXPECT_GE(answer["canary"]["rows"], 10) << answer;
  EXPECT_EQ(answer["canary"]["same_bytes"], answer["canary"]["rows"]) << answer;
  EXPECT_EQ(answer["canary"]["difference"], 0) << answer;
  c.forget();
  EXPECT_EQ(c.generate(prompt, length), undisturbed_) << "on the new copy";
  EXPECT_EQ(threads_of_niceness(19), 0U) << "the canary is over";
}

// What the tokens of the comparison do not reach.
TEST_F(shadow_runs, a_reload_whose_new_copy_computes_live_texts_otherwise_is_rejected) {
  program p(yard_, "cpu");
  conversation c(p);
  busy texts([&] {
    c.forget();
    return c.generate(prompt, length);
  });
  yard_.install("cpu", read(BITNET_SHADOW_LATE_PLUGIN));
  try {
    p.reload("cpu", with_canary(100'000));
    ADD_FAILURE() << "it was taken";
  } catch (const failed_call& e) {
    EXPECT_EQ(e.status, BITNET_REJECTED) << e.what();
    EXPECT_NE(std::string(e.what()).find("other logits for live texts"), std::string::npos)
        << e.what();
  }
  for (const std::string& text : texts.texts()) EXPECT_EQ(text, undisturbed_);
  EXPECT_FALSE(c.report().contains("moves"));
  EXPECT_EQ(p.reload("cpu")["changed"], true) << "without a canary nothing finds it";
}

TEST_F(shadow_runs, a_canary_of_a_scheduler_gives_the_same_bytes) {
  program p(yard_, "cpu");
  requests r(p);
  const std::vector<std::string> expected = r.texts();
  busy texts([&] {
    EXPECT_EQ(r.texts(), expected);
    return std::string();
  });
  yard_.install("cpu", rebuilt(read(BITNET_CPU_PLUGIN), 1));
  const json answer = p.reload("cpu", with_canary(10));
  EXPECT_GE(answer["canary"]["rows"], 10) << answer;
  EXPECT_EQ(answer["canary"]["same_bytes"], answer["canary"]["rows"]) << answer;
  texts.texts();
  EXPECT_EQ(r.texts(), expected);
}

TEST_F(shadow_runs, a_canary_without_rows_rejects_the_reload) {
  program p(yard_, "cpu");
  const auto rejected = [&](uint32_t wait_ms) {
    yard_.install("cpu", rebuilt(read(BITNET_CPU_PLUGIN), 1));
    try {
      p.reload("cpu", with_canary(10, wait_ms));
    } catch (const failed_call& e) {
      return e.status;
    }
    return bitnet_status{BITNET_OK};
  };
  EXPECT_EQ(rejected(0), BITNET_UNAVAILABLE) << "nothing is open";
  conversation c(p);
  EXPECT_EQ(rejected(20), BITNET_TIMEOUT) << "nothing is generated";
  shadow own(p, shadow_options("cpu"));
  own.follow(c);
  EXPECT_EQ(rejected(0), BITNET_UNAVAILABLE) << "it has a shadow of its own";
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  EXPECT_EQ(own.settled()["rows"]["compared"], length);
}

}  // namespace
}  // namespace bitnet::test
