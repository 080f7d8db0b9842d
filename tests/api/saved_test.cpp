// Computed prompts in files: known after a restart, and no file but the right one is believed.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "../core/model/small_hybrid.hpp"
#include "../scratch_folder.hpp"
#include "many_requests.hpp"

namespace {

namespace fs = std::filesystem;
using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the requests

class saved : public scheduler {
 protected:
  void SetUp() override {
    scheduler::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  }

  // Another model in place of the demo model.
  void load(const fs::path& file) {
    close();
    replace_model(file);
    ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  }
  void load(const bitnet::tests::gguf_builder& b) {
    load(scratch_.write("small.gguf", bitnet::tests::as_text(b.build())));
  }
  void close() {
    for (bitnet_request* r : requests_) bitnet_request_close(r);
    requests_.clear();
    bitnet_scheduler_close(scheduler_);
    scheduler_ = nullptr;
  }
  void restart() {
    close();
    ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  }

  static wish wish_of(uint32_t n, uint32_t kind) {
    wish w;
    w.prompt = prompt_of(n, kind);
    w.logprobs = 1;
    w.n_top = 5;
    return w;
  }
  bitnet_status save(const std::vector<bitnet_token>& ids) {
    error_ = blank_error();
    n_ = 0;
    return bitnet_scheduler_save(scheduler_, ids.data(), ids.size(), path_.c_str(), &n_, &error_);
  }
  bitnet_status restore() { return restore(path_); }
  bitnet_status restore(const fs::path& path) {
    error_ = blank_error();
    n_ = 0;
    return bitnet_scheduler_restore(scheduler_, path.c_str(), &n_, &error_);
  }
  // Computes and saves it; what it gave.
  answer make_saved(const wish& w) {
    const answer first = read(submit(w)).at(0);
    EXPECT_EQ(save(w.prompt), BITNET_OK) << error_.message;
    return first;
  }
  // The same tokens with the same bits, of which so many were known.
  void expect_same(const wish& w, const answer& first, uint64_t n_cached) {
    const answer again = read(submit(w)).at(0);
    EXPECT_EQ(again.end.n_cached, n_cached);
    EXPECT_EQ(again.tokens, first.tokens);
    EXPECT_EQ(again.tokens, alone(w));
    EXPECT_EQ(again.logprobs, first.logprobs) << "bit by bit";
    ASSERT_EQ(again.top.size(), first.top.size());
    for (std::size_t i = 0; i < first.top.size(); ++i)
      for (std::size_t k = 0; k < first.top[i].size(); ++k)
        EXPECT_EQ(again.top[i][k].logprob, first.top[i][k].logprob) << i << ", " << k;
  }
  void expect_rejected(bitnet_status got, bitnet_status status, const char* says) {
    EXPECT_EQ(got, status) << error_.message;
    EXPECT_NE(std::string(error_.message).find(says), std::string::npos)
        << says << ": " << error_.message;
    EXPECT_EQ(n_, 0U);
  }

  scratch_folder scratch_;
  fs::path path_ = scratch_.path() / "prompt.seq";
  uint64_t n_ = 0;
};

TEST_F(saved, prompts_are_known_after_a_restart) {
  const wish w = wish_of(300, 3);
  const answer first = make_saved(w);
  EXPECT_EQ(n_, 256U);
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  restart();
  ASSERT_EQ(restore(), BITNET_OK) << error_.message;
  EXPECT_EQ(n_, 256U);
  expect_no_blocks();
  expect_same(w, first, 256);
  wish other = wish_of(300, 3);
  other.prompt.resize(200);
  other.prompt.insert(other.prompt.end(), {4, 5, 6});  // another text behind the same begin
  const answer got = read(submit(other)).at(0);
  EXPECT_EQ(got.end.n_cached, 192U);
  EXPECT_EQ(got.tokens, alone(other));
}

TEST_F(saved, conversations_are_known_after_a_restart) {
  wish w = wish_of(100, 2);
  w.max_tokens = 60;
  const answer turn = read(submit(w)).at(0);
  wish next = w;
  next.prompt.insert(next.prompt.end(), turn.tokens.begin(), turn.tokens.end());
  ASSERT_EQ(save(next.prompt), BITNET_OK) << error_.message;
  EXPECT_EQ(n_, 128U) << "the last of 160 tokens was never computed";
  next.prompt.push_back(7);
  restart();
  ASSERT_EQ(restore(), BITNET_OK) << error_.message;
  const answer got = read(submit(next)).at(0);
  EXPECT_EQ(got.end.n_cached, 128U);
  EXPECT_EQ(got.tokens, alone(next));
}

TEST_F(saved, recurrent_states_are_known_after_a_restart) {
  load(bitnet::tests::small_hybrid());
  const wish w = wish_of(150, 3);
  const answer first = make_saved(w);
  EXPECT_EQ(n_, 128U);
  restart();
  ASSERT_EQ(restore(), BITNET_OK) << error_.message;
  EXPECT_EQ(n_, 128U);
  expect_same(w, first, 128);
}

TEST_F(saved, running_requests_continue_while_a_sequence_is_loaded) {
  wish w = wish_of(200, 3);
  make_saved(w);
  restart();
  wish running;
  running.prompt = prompt_of(30, 1);
  running.max_tokens = 150;
  bitnet_request* const r = submit(running);
  std::map<uint32_t, answer> all;
  ASSERT_TRUE(take(r, all));
  ASSERT_EQ(restore(), BITNET_OK) << error_.message;
  ASSERT_EQ(save(w.prompt), BITNET_OK) << error_.message;
  EXPECT_EQ(n_, 192U);
  while (take(r, all)) {
  }
  EXPECT_EQ(all.at(0).tokens, alone(running));
  EXPECT_EQ(read(submit(w)).at(0).end.n_cached, 192U);
}

TEST_F(saved, files_that_are_not_saved_sequences_are_rejected) {
  make_saved(wish_of(200, 3));
  const std::string whole = scratch_folder::read(path_);
  struct row {
    const char* why;
    std::function<void(std::string&)> change;
    bitnet_status status;
    const char* says;
  };
  const row rows[] = {
      {"empty", [](std::string& f) { f.clear(); }, BITNET_BAD_DATA, "expected a saved sequence"},
      {"a model", [](std::string& f) { f.replace(0, 4, "GGUF"); }, BITNET_BAD_DATA,
       "expected a saved sequence"},
      {"cut in its header", [](std::string& f) { f.resize(40); }, BITNET_BAD_DATA,
       "within the begin"},
      {"cut in its blocks", [](std::string& f) { f.resize(f.size() - 1000); }, BITNET_BAD_DATA,
       "and the file has"},
      {"longer", [](std::string& f) { f += "x"; }, BITNET_BAD_DATA, "and the file has"},
      {"a bit of a block", [](std::string& f) { f[f.size() - 5000] ^= 1; }, BITNET_BAD_DATA,
       "the checksum"},
      {"a token", [](std::string& f) { f[f.find("layers 0") + 100] ^= 1; }, BITNET_BAD_DATA,
       "the checksum"},
      {"another version", [](std::string& f) { f[8] = 9; }, BITNET_INCOMPATIBLE,
       "has version 9, and this library reads 1"},
      {"another backend", [](std::string& f) { f[f.find("computed by: ") + 13] = 'x'; },
       BITNET_UNSUPPORTED, "expected a sequence whose computed by is"},
  };
  restart();
  for (const row& r : rows) {
    std::string file = whole;
    r.change(file);
    SCOPED_TRACE(r.why);
    expect_rejected(restore(scratch_.write("other.seq", file)), r.status, r.says);
    EXPECT_NE(std::string(error_.message).find("other.seq"), std::string::npos) << error_.message;
  }
  expect_rejected(restore(scratch_.path() / "none.seq"), BITNET_NOT_FOUND, "cannot be opened");
  expect_rejected(restore(scratch_.path()), BITNET_BAD_DATA, "no regular file");
  const fs::path pipe = scratch_.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_rejected(restore(pipe), BITNET_BAD_DATA, "no regular file");
  EXPECT_EQ(read(submit(wish_of(200, 3))).at(0).end.n_cached, 0U) << "nothing came in";
}

TEST_F(saved, sequences_with_other_options_are_rejected) {
  make_saved(wish_of(200, 3));
  struct row {
    const char* why;
    std::function<void(bitnet_session_options&)> change;
    const char* says;
  };
  const row rows[] = {
      {"keys", [](auto& o) { o.kv_k = BITNET_KV_Q8_0; },
       "expected a sequence whose kv_k is \"q8_0\", found \"f16\": open the scheduler with"},
      {"values", [](auto& o) { o.kv_v = BITNET_KV_F32; },
       "expected a sequence whose kv_v is \"f32\", found \"f16\": open the scheduler with"},
      {"window", [](auto& o) { o.window = 100; }, "whose window is \"100, keep 0\", found \"0, "},
      {"order of sums", [](auto& o) { o.deterministic = 0; }, "whose deterministic is \"0\""},
  };
  for (const row& r : rows) {
    SCOPED_TRACE(r.why);
    close();
    change_ = r.change;
    ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
    expect_rejected(restore(), BITNET_UNSUPPORTED, r.says);
  }
  change_ = {};
  load(bitnet::tests::small_hybrid());
  expect_rejected(restore(), BITNET_UNSUPPORTED, "expected a sequence whose model is");
}

TEST_F(saved, a_scheduler_with_too_few_blocks_reports_it) {
  wish w = wish_of(400, 3);
  make_saved(w);
  close();
  change_ = [](bitnet_session_options& o) { o.n_context = 128; };
  auto small = defaults();
  small.max_sequences = 1;
  ASSERT_EQ(open(small), BITNET_OK) << error_.message;
  expect_rejected(restore(), BITNET_OUT_OF_DEVICE_MEMORY,
                  "has 6 blocks of 64 tokens, and the scheduler has room for 2");
}

TEST_F(saved, an_unknown_sequence_is_not_saved) {
  expect_rejected(save(prompt_of(200, 3)), BITNET_NOT_FOUND,
                  "no whole block of 64 tokens is known");
  EXPECT_FALSE(fs::exists(path_));
  make_saved(wish_of(200, 3));
  const std::string before = scratch_folder::read(path_);
  expect_rejected(save(prompt_of(200, 4)), BITNET_NOT_FOUND, "no whole block");
  EXPECT_EQ(scratch_folder::read(path_), before) << "the file that was there stays";
  expect_rejected(save(prompt_of(600, 3)), BITNET_CONTEXT_FULL, "600 tokens are more than");
  const fs::path folder = scratch_.path() / "no" / "such" / "folder";
  path_ = folder;
  expect_rejected(save(prompt_of(200, 3)), BITNET_INVALID_ARGUMENT, "cannot be written");
  path_ = scratch_.path();
  expect_rejected(save(prompt_of(200, 3)), BITNET_INVALID_ARGUMENT, "cannot be written");
  path_ = scratch_.path() / "pipe";
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  expect_rejected(save(prompt_of(200, 3)), BITNET_INVALID_ARGUMENT, "no regular file");
}

TEST_F(saved, wrong_calls_are_rejected) {
  const bitnet_token id = 5;
  error_ = blank_error();
  EXPECT_EQ(bitnet_scheduler_save(nullptr, &id, 1, "x", nullptr, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_scheduler_save(scheduler_, nullptr, 1, "x", nullptr, &error_),
            BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_scheduler_save(scheduler_, &id, 1, nullptr, nullptr, &error_),
            BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_scheduler_restore(nullptr, "x", nullptr, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_scheduler_restore(scheduler_, nullptr, nullptr, &error_),
            BITNET_INVALID_ARGUMENT);
}

}  // namespace
