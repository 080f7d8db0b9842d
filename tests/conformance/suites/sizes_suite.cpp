// Each op at the sizes of real models, and odd ones beside them. One test per size, so that what a
// device cannot hold is skipped alone and says why.

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "harness/plugin.hpp"
#include "model/tiny_model.hpp"
#include "reference/evaluate.hpp"
#include "reference/names.hpp"
#include "suites/blame.hpp"
#include "suites/trial.hpp"

namespace bitnet::conformance {
namespace {

class size_test : public testing::Test {
 public:
  explicit size_test(const size_case& s) : size_(s) {}
  void TestBody() override {
    opened_device device;
    const uint32_t level = device.level(size_.op, size_.format);
    if (level == BITNET_LEVEL_NONE) GTEST_SKIP() << "graph_query answers none";
    if (const std::string missing = scaffold_missing(device, size_.op); !missing.empty())
      GTEST_SKIP() << "graph_query answers none for " << missing;
    try {
      run(device, size_.make(), level);
    } catch (const std::bad_alloc&) {
      GTEST_SKIP() << "the machine has no memory for the case itself";
    }
  }

 private:
  void run(opened_device& device, const op_case& c, uint32_t level) {
    const bitnet_device_info about = device.info();
    if (uses_pool(c) && !holds(about, c)) GTEST_SKIP() << "the device has no such KV pools";
    if (c.window != 0 && (about.attention_flags & BITNET_ATTENTION_WINDOW) == 0)
      GTEST_SKIP() << "the device does not declare BITNET_ATTENTION_WINDOW";
    if (c.own_window != 0 && (about.attention_flags & BITNET_ATTENTION_LAYER_WINDOW) == 0)
      GTEST_SKIP() << "the device does not declare BITNET_ATTENTION_LAYER_WINDOW";
    const std::vector<bitnet_kernel_info> listed = device.kernels();
    for (const uint32_t flags : {BITNET_PROGRAM_DETERMINISTIC, 0u}) {
      const comparison found = run_case(device, c, flags);
      if (!found.rejected.empty()) GTEST_SKIP() << "rejected: " << found.rejected;
      if (const std::string excuse = too_large(about, c, found); !excuse.empty())
        GTEST_SKIP() << excuse;
      lay_blame(device, c, flags, found);
      const std::string claim = broken_claim(listed, found.stats, size_.op, level);
      if (!claim.empty()) ADD_FAILURE() << claim;
      if (HasFailure() || IsSkipped()) return;
    }
  }

  static bool uses_pool(const op_case& c) {
    return c.op == BITNET_OP_KV_WRITE || c.op == BITNET_OP_ATTN_PAGED;
  }
  static bool holds(const bitnet_device_info& about, const op_case& c) {
    const uint32_t types =
        about.kv_dtypes != 0 ? about.kv_dtypes : 1u << BITNET_DTYPE_F32 | 1u << BITNET_DTYPE_F16;
    return (types >> c.dtype_k & 1) != 0 && (types >> c.dtype_v & 1) != 0;
  }
  // A device that says how much it holds need not hold more. One that has the room and rejects
  // fails.
  static std::string too_large(const bitnet_device_info& about, const op_case& c,
                               const comparison& found) {
    if (found.status != BITNET_OUT_OF_MEMORY) return "";
    uint64_t bytes = c.expected.size() * sizeof(float);
    for (const model_tensor& t : c.graph.tensors) bytes += t.data.size();
    constexpr uint64_t forms = 4;  // as given, as kept, activations, what drivers round up
    if (about.memory_total_bytes != 0 && about.memory_total_bytes > forms * bytes) return "";
    return std::to_string(bytes >> 20) + " MiB and their copies are more than the " +
           std::to_string(about.memory_total_bytes >> 20) + " MiB of the device: " + found.wrong;
  }

  size_case size_;
};

const bool sizes_are_registered = [] {
  for (const size_case& s : all_sizes()) {
    std::string name = kernel_name(s.op, s.format) + "." + s.shape;
    std::ranges::replace(name, '.', '_');
    testing::RegisterTest("sizes", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [s]() -> testing::Test* { return new size_test(s); });
  }
  return true;
}();

runner_options options_of(const opened_device& device) {
  runner_options o;
  o.opened = device.device;
  return o;
}

// A prompt of `n` tokens from `first` on, without a period.
std::vector<token_in> prompt_of(uint64_t first, uint64_t n, int32_t sequence = 0) {
  std::vector<token_in> out;
  for (uint64_t t = first; t < first + n; ++t)
    out.push_back({static_cast<int32_t>(pattern_at(t + 1000 * static_cast<uint64_t>(sequence), 47)),
                   sequence});
  return out;
}

model without_composites(model m) {
  std::erase_if(m.ops, [](const bitnet_op& op) { return op.op >= BITNET_OP_FIRST_COMPOSITE; });
  return m;
}

// As missing_ops, of a narrow model of the same ops and formats: making a wide one takes long.
std::string missing_of_narrow(const opened_device& device, const tiny_shape& shape) {
  return missing_ops(device, tiny_model({.layers = 1,
                                         .embed_format = shape.embed_format,
                                         .head_format = shape.head_format,
                                         .composites = false}));
}

// Fused kernels against their bodies, which the tests above judge.
void compare_with_bodies(opened_device& device, const tiny_shape& shape,
                         const std::vector<uint64_t>& chunks) {
  if (const std::string missing = missing_of_narrow(device, shape); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  if (std::ranges::none_of(device.kernels(), [](const bitnet_kernel_info& k) {
        return k.op >= BITNET_OP_FIRST_COMPOSITE;
      }))
    GTEST_SKIP() << "it lists no kernel for a composite";
  const tiny_model made(shape);
  const model& fused = made;
  const model bodies = without_composites(fused);
  if (const std::string missing = missing_ops(device, bodies); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  runner_options o = options_of(device);
  o.max_tokens = o.max_outputs = static_cast<uint32_t>(*std::ranges::max_element(chunks));
  o.max_sequences = 1;
  o.block_tokens = 64;
  o.max_blocks = 9;
  std::vector<std::vector<float>> found[2];
  for (const model* m : {&fused, &bodies}) {
    runner r(device.table(), *m, o);
    uint64_t at = 0;
    for (const uint64_t n : chunks) {
      const std::vector<float> rows = r.run(prompt_of(at, n));
      for (uint64_t t = 0; t < n; ++t)
        found[m == &bodies].emplace_back(
            rows.begin() + static_cast<int64_t>(t * m->vocabulary()),
            rows.begin() + static_cast<int64_t>((t + 1) * m->vocabulary()));
      at += n;
    }
  }
  // Of each token, so that a few wrong ones are not lost among hundreds.
  for (uint64_t t = 0; t < found[0].size(); ++t)
    ASSERT_LE(nmse(found[0][t], found[1][t]), few_codes)
        << "token " << t << ": the fused kernels compute something else";
}

TEST(sizes, composites_2560_wide_6912_feed_forward) {
  opened_device device;
  compare_with_bodies(
      device,
      {.layers = 1, .embedding = 2560, .heads = 20, .kv_heads = 5, .head_dim = 128, .ff = 6912},
      {3, 1});
}

TEST(sizes, composites_512_tokens) {
  opened_device device;
  compare_with_bodies(device, {.layers = 1, .ff = 701}, {512, 1, 30});
}

TEST(sizes, composites_head_of_128257_rows) {
  opened_device device;
  compare_with_bodies(
      device, {.layers = 1, .vocab = 128257, .embed_format = BITNET_FORMAT_TERNARY2}, {2, 1});
}

TEST(sizes, packed_weights_of_a_head_of_128256_rows) {
  opened_device device;
  const tiny_shape shape{.layers = 1, .vocab = 128256, .embed_format = BITNET_FORMAT_TERNARY2};
  if (const std::string missing = missing_of_narrow(device, shape); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  const tiny_model m(shape);
  if (const std::string missing = missing_ops(device, m); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  runner_options o = options_of(device);
  o.max_tokens = o.max_outputs = 1;
  runner r(device.table(), m, o), plain(device.table(), m, o);
  const std::vector<packed_weight> forms = r.pack(m);
  if (forms.empty()) GTEST_SKIP() << "it packs no second form of a head (bitnet/abi/packed.h)";
  const std::vector<float> whole = plain.run(prompt_of(0, 1));
  constexpr uint32_t top = 40;
  EXPECT_EQ(wrong_largest(whole, largest_of(r, prompt_of(0, 1), top), top), "");
}

}  // namespace
}  // namespace bitnet::conformance
