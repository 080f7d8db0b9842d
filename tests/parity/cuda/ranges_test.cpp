// What the cuda backend reports to a profiler that NVTX loads (tests/cuda/stand_in/profiler.cpp):
// which ranges there are, in which others, and that each ends on the thread where it began.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

#include "runner.hpp"

namespace bitnet::parity {
namespace {

const std::string file = std::string(testing::TempDir()) + "bitnet-ranges-" +
                         std::to_string(static_cast<unsigned>(getpid()));

// NVTX looks for its tool once in a process.
struct environment : testing::Environment {
  void SetUp() override {
    std::remove(file.c_str());
    setenv("NVTX_INJECTION64_PATH", BITNET_PROFILER, 1);
    setenv("BITNET_TEST_RANGES", file.c_str(), 1);
  }
  void TearDown() override { std::remove(file.c_str()); }
};
[[maybe_unused]] const auto* const set_up = testing::AddGlobalTestEnvironment(new environment);

// What the profiler noted since the last call: each range, and what it is in, as "outer/inner".
std::vector<std::string> noted() {
  std::map<std::string, std::vector<std::string>> around;  // by process and thread
  std::vector<std::string> out;
  std::ifstream in(file);
  std::string process, thread, word, name;
  while (in >> process >> thread >> word && std::getline(in, name)) {
    std::vector<std::string>& open = around[process + " " + thread];
    if (word == "begin") {
      std::string path;
      open.push_back(name.substr(1));
      for (const std::string& one : open) path += (path.empty() ? "" : "/") + one;
      out.push_back(path);
    } else if (word == "end" && name.empty() && !open.empty()) {
      open.pop_back();
    } else if (word != "attached") {
      ADD_FAILURE() << word << name << " within " << open.size();
    }
  }
  for (const auto& [where, open] : around)
    EXPECT_TRUE(open.empty()) << "'" << open.back() << "' has no end on " << where;
  std::remove(file.c_str());
  return out;
}

class ranges : public testing::Test {
 protected:
  void SetUp() override {
    try {
      plugin_.emplace(BITNET_GPU_PLUGIN, host_);
      uint32_t n = 0;
      must(
          [&](bitnet_error* e) { return plugin_->table.device_count(plugin_->table.self, &n, e); });
    } catch (const std::exception& e) {
      GTEST_SKIP() << e.what();
    }
    tiny_shape shape;
    shape.layers = 1;
    shape.vocab = 1500;  // enough for the two-stage head
    model_.emplace(shape);
    noted();
    run_.emplace(plugin_->table, *model_);
    loading_ = noted();
  }

  tiny_host host_{1};
  std::optional<plugin> plugin_;
  std::optional<tiny_model> model_;
  std::optional<runner> run_;
  std::vector<std::string> loading_;
};

TEST_F(ranges, of_what_is_loaded) {
  ASSERT_FALSE(loading_.empty());
  EXPECT_TRUE(loading_.front().starts_with("open Stand-in")) << loading_.front();
  uint64_t uploads = 0;
  for (const std::string& name : loading_) {
    if (!name.starts_with("upload ")) continue;
    const bitnet_tensor_desc desc = model_->descs()[uploads++];
    EXPECT_EQ(name, "upload " + std::string(desc.name.data, desc.name.size) + ", " +
                        std::to_string(desc.data_bytes) + " bytes");
  }
  EXPECT_EQ(uploads, model_->tensors.size());
  EXPECT_EQ(std::ranges::count(loading_, "plan " + std::to_string(model_->ops.size()) + " ops"), 1);
}

TEST_F(ranges, of_steps) {
  run_->run({{3}, {4}, {5}});
  const std::vector<std::string> first = noted();
  ASSERT_GE(first.size(), 4u);
  const std::string step = "step 3 tokens, 3 sequences, 3 outputs";
  EXPECT_EQ(first[0], step);
  EXPECT_EQ(first[1], step + "/record 4 tokens, 4 outputs") << "the bucket that three fall into";
  EXPECT_TRUE(first[2].starts_with(first[1] + "/load kernels of ")) << first[2];
  EXPECT_EQ(first[first.size() - 2], step + "/submit, all logits");
  EXPECT_EQ(first.back(), "wait");

  run_->run({{6}, {7}, {8}});
  EXPECT_EQ(noted(), (std::vector<std::string>{"wait for the last step", step,
                                               step + "/submit, all logits", "wait"}))
      << "it is recorded once";
}

TEST_F(ranges, of_the_two_stage_head) {
  run_->run({{3}});
  noted();
  bitnet_step step = run_->prepare({{4}});
  step.top_logits = 1;
  ASSERT_EQ(run_->submit(step).status, BITNET_OK);
  const std::vector<std::string> seen = noted();
  const std::string own = "step 1 tokens, 3 sequences, 1 outputs";
  // Codes of rows of 128 bytes, and three numbers to each.
  const std::string copy = "/make the copy of the head, " + std::to_string(1500 * (128 + 12));
  EXPECT_EQ(std::ranges::count(seen, own + copy + " bytes"), 1);
  EXPECT_EQ(std::ranges::count(seen, own + "/submit, largest logits"), 1);
}

TEST_F(ranges, of_steps_that_are_prepared) {
  bitnet_prepare_request request{};
  request.struct_size = sizeof request;
  request.n_tokens = 2;
  request.n_outputs = 1;
  must([&](bitnet_error* e) { return plugin_->table.binding_prepare(run_->binding, &request, e); });
  const std::vector<std::string> seen = noted();
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen[0], "prepare 2 tokens, 1 outputs");
  EXPECT_EQ(seen[1], seen[0] + "/record 4 tokens, 1 outputs");
}

TEST_F(ranges, of_blocks_that_are_moved) {
  run_->run({{3}, {4}});
  noted();
  const uint32_t from[] = {3, 10}, to[] = {4, 5};
  std::vector<uint8_t> bytes(2 * run_->block_bytes);
  ASSERT_EQ(run_->copy_blocks(from, to).status, BITNET_OK);
  ASSERT_EQ(run_->export_blocks(to, bytes).status, BITNET_OK);
  ASSERT_EQ(run_->import_blocks(from, bytes).status, BITNET_OK);
  const std::string size = ", " + std::to_string(bytes.size()) + " bytes";
  EXPECT_EQ(noted(),
            (std::vector<std::string>{"copy KV of 2 blocks", "wait", "export KV of 2 blocks" + size,
                                      "wait", "import KV of 2 blocks" + size, "wait"}));
}

TEST_F(ranges, end_where_a_step_is_rejected) {
  bitnet_step step = run_->prepare({{1 << 30}});
  EXPECT_EQ(run_->submit(step).status, BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(noted(), std::vector<std::string>{"step 1 tokens, 3 sequences, 1 outputs"});
}

}  // namespace
}  // namespace bitnet::parity
