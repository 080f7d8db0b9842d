// Saved sequences of a model that is cut over two backends, through bitnet.h: a file has the keys
// and states of all parts, and is known by where the model was cut.

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../core/model/small_hybrid.hpp"
#include "yard.hpp"

namespace bitnet::test {
namespace {

namespace fs = std::filesystem;

using ids = std::vector<bitnet_token>;

ids prompt_of(std::size_t n) {
  ids out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(static_cast<bitnet_token>(3 + i * 7 % 50));
  return out;
}

struct answer {
  ids tokens;
  std::vector<float> logprobs;
  uint64_t n_cached = 0;

  bool operator==(const answer& other) const {
    return tokens == other.tokens && logprobs == other.logprobs;
  }
};

// A program with a scheduler, whose model has its last `n_layers` layers on "fragile" and the
// others on "cpu"; -1: all on "cpu".
class place {
 public:
  place(const yard& y, int n_layers, const std::string& file) {
    bitnet_model_options o;
    bitnet_model_defaults(&o, sizeof o);
    if (n_layers >= 0) {
      o.gpu_layers = BITNET_GPU_LAYERS_COUNT;
      o.n_gpu_layers = static_cast<uint32_t>(n_layers);
    }
    program_ = std::make_unique<program>(y, n_layers < 0 ? "cpu" : "fragile", &o, file);
    const bitnet_session_options of = usual();
    bitnet_scheduler_options s;
    bitnet_scheduler_defaults(&s, sizeof s);
    s.sequences = &of;
    bitnet_error e = blank();
    if (const auto status = bitnet_scheduler_open(program_->model, &s, &scheduler_, &e);
        status != BITNET_OK)
      throw failed_call(status, e);
  }
  place(const place&) = delete;
  place& operator=(const place&) = delete;
  ~place() { bitnet_scheduler_close(scheduler_); }

  answer ask(const ids& prompt) {
    const greedy how(8);
    bitnet_request_options o;
    bitnet_request_defaults(&o, sizeof o);
    o.prompt = prompt.data();
    o.n_prompt = prompt.size();
    o.generation = &how.generation;
    o.logprobs = 1;
    bitnet_error e = blank();
    bitnet_request* r = nullptr;
    if (const auto status = bitnet_request_submit(scheduler_, &o, &r, &e); status != BITNET_OK)
      throw failed_call(status, e);
    answer out;
    bitnet_event event{};
    event.struct_size = sizeof event;
    while (bitnet_request_next(r, 60'000, &event, &e) == BITNET_OK) {
      if (event.kind == BITNET_EVENT_TEXT) {
        if (event.token < 0) continue;
        out.tokens.push_back(event.token);
        out.logprobs.push_back(event.logprob);
        continue;
      }
      EXPECT_EQ(event.kind, BITNET_EVENT_END)
          << std::string(event.message.data, event.message.size);
      out.n_cached = event.n_cached;
    }
    bitnet_request_close(r);
    return out;
  }
  uint64_t save(const ids& prompt, const fs::path& to) {
    uint64_t n = 0;
    bitnet_error e = blank();
    if (const auto status =
            bitnet_scheduler_save(scheduler_, prompt.data(), prompt.size(), to.c_str(), &n, &e);
        status != BITNET_OK)
      throw failed_call(status, e);
    return n;
  }
  uint64_t restore(const fs::path& from) {
    uint64_t n = 0;
    bitnet_error e = blank();
    if (const auto status = bitnet_scheduler_restore(scheduler_, from.c_str(), &n, &e);
        status != BITNET_OK)
      throw failed_call(status, e);
    return n;
  }

 private:
  std::unique_ptr<program> program_;
  bitnet_scheduler* scheduler_ = nullptr;
};

class saved : public testing::Test {
 protected:
  void SetUp() override {
    yard_.install("cpu", read(BITNET_CPU_PLUGIN));
    yard_.describe("cpu");
    yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
    yard_.describe("fragile");
    hybrid_ = scratch_.write("hybrid.gguf",
                             bitnet::tests::as_text(bitnet::tests::small_hybrid().build()));
  }

  yard yard_;
  scratch_folder scratch_;
  fs::path hybrid_, path_ = scratch_.path() / "prompt.seq";
};

// Layers that keep states and layers that keep keys are on either device.
TEST_F(saved, prompts_of_a_cut_model_are_known_after_a_restart) {
  const ids prompt = prompt_of(150);
  for (const int n_layers : {1, 2, 3, 4}) {
    SCOPED_TRACE(n_layers);
    answer first;
    {
      place before(yard_, n_layers, hybrid_);
      first = before.ask(prompt);
      EXPECT_EQ(first.n_cached, 0U);
      EXPECT_EQ(before.save(prompt, path_), 128U);
    }
    EXPECT_EQ(place(yard_, -1, hybrid_).ask(prompt), first) << "as on one device";
    place after(yard_, n_layers, hybrid_);
    EXPECT_EQ(after.restore(path_), 128U);
    const answer again = after.ask(prompt);
    EXPECT_EQ(again.n_cached, 128U);
    EXPECT_EQ(again, first) << "bit by bit";
  }
}

TEST_F(saved, prompts_of_the_demo_model_are_known_after_a_restart) {
  if (demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
  const ids prompt = prompt_of(150);
  answer first;
  {
    place before(yard_, 2, demo_model());
    first = before.ask(prompt);
    EXPECT_EQ(before.save(prompt, path_), 128U);
  }
  place after(yard_, 2, demo_model());
  EXPECT_EQ(after.restore(path_), 128U);
  const answer again = after.ask(prompt);
  EXPECT_EQ(again.n_cached, 128U);
  EXPECT_EQ(again, first) << "bit by bit";
}

// Which backend computed which layer decides the bits: another cut is another origin.
TEST_F(saved, files_of_another_cut_are_rejected) {
  const ids prompt = prompt_of(150);
  for (const auto& [from, to] : {std::pair{2, 1}, {2, -1}, {-1, 2}, {2, 5}}) {
    SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
    {
      place before(yard_, from, hybrid_);
      before.ask(prompt);
      before.save(prompt, path_);
    }
    place after(yard_, to, hybrid_);
    try {
      after.restore(path_);
      ADD_FAILURE() << "it was taken";
    } catch (const failed_call& why) {
      EXPECT_EQ(why.status, BITNET_UNSUPPORTED) << why.what();
      EXPECT_NE(std::string(why.what()).find("whose computed by is"), std::string::npos)
          << why.what();
      EXPECT_NE(std::string(why.what()).find("compute the prompt again"), std::string::npos)
          << why.what();
    }
    EXPECT_EQ(after.ask(prompt).n_cached, 0U);
  }
}

}  // namespace
}  // namespace bitnet::test
