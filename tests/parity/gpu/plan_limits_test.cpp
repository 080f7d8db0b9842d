// Whole models that do not fit a device of plugins/gpu-common: each is rejected with the name of
// the limit, and fits where the limit is just kept. Sizes are counted by hand from the shape of the
// tiny model: two layers of 4 heads, 2 of them for keys, of 32 elements; vectors of 128 and 200.

#include <gtest/gtest.h>

#include "planned.hpp"

namespace bitnet::parity {
namespace {

// Offsets of 256 bytes, so that sizes are rounded up to that. The names are those of WebGPU.
gpu::facts limited(uint64_t binding, uint64_t allocation) {
  gpu::facts f = like_vulkan();
  f.name = "a small device";
  f.capabilities.max_binding_bytes = binding;
  f.capabilities.max_binding_name = "maxStorageBufferBindingSize";
  f.capabilities.max_allocation_bytes = allocation;
  f.capabilities.max_allocation_name = "maxBufferSize";
  return f;
}

struct model_on_device {
  const char* why;
  uint64_t binding, allocation;
  uint32_t max_tokens, n_blocks;  // blocks have 4 tokens
  int64_t vocab = 50;
};

runner_options options_of(const model_on_device& of_row) {
  runner_options o = of(of_row.max_tokens);
  o.n_blocks = of_row.n_blocks;
  return o;
}
tiny_model model_of(const model_on_device& of_row) {
  return tiny_model({.vocab = of_row.vocab});
}

constexpr uint64_t mebibyte = uint64_t{1} << 20;

TEST(limits_of_a_device, a_model_that_just_keeps_them_runs) {
  const model_on_device rows[] = {
      {"a row of 200 f32 takes 1024 bytes, as the keys of two blocks do", 1024, mebibyte, 1, 2},
      {"keys of a layer: 8 blocks of 4 tokens and 2 heads of 64 bytes", 4096, mebibyte, 1, 8},
      {"values of 5 tokens, 800 bytes each", 4096, mebibyte, 5, 8},
      {"a vocabulary of 1024", 4096, mebibyte, 1, 8, 1024},
      {"allocations that are smaller than bindings", mebibyte, 8192, 1, 16},
  };
  for (const model_on_device& row : rows) {
    SCOPED_TRACE(row.why);
    const tiny_model m = model_of(row);
    described d(limited(row.binding, row.allocation), m, options_of(row));
    EXPECT_FALSE(d.step(row.max_tokens).empty());
  }
}

// The model is not built, and the message says all of that.
void expect_rejected(const gpu::facts& about, const model& m, const runner_options& options,
                     bitnet_status status, const lines& said) {
  try {
    const described d(about, m, options);
    ADD_FAILURE() << "it was built all the same";
  } catch (const call_failed& e) {
    const std::string message = e.what();
    EXPECT_EQ(e.status, status) << message;
    EXPECT_EQ(e.complaint, "");
    for (const std::string& one : said)
      EXPECT_NE(message.find(one), std::string::npos) << message << "\nlacks: " << one;
  }
}

TEST(limits_of_a_device, a_model_that_exceeds_one_is_rejected_with_its_name) {
  const struct {
    model_on_device at;
    bitnet_status status;
    lines said;
  } rows[] = {
      {{"weights: a row of 200 f32", 768, mebibyte, 1, 1},
       BITNET_UNSUPPORTED,
       {"a row of 800 bytes", "the 768 (maxStorageBufferBindingSize) that a kernel sees"}},
      {{"weights: a row for which no allocation has room", mebibyte, 768, 1, 1},
       BITNET_UNSUPPORTED,
       {"a row of 800 bytes", "the 768 (maxBufferSize) that a kernel sees"}},
      {{"keys of 9 blocks", 4096, mebibyte, 1, 9},
       BITNET_OUT_OF_DEVICE_MEMORY,
       {"the keys of a layer take 4608 bytes", "sees 4096 (maxStorageBufferBindingSize) at once",
        "use a smaller context"}},
      {{"keys of 17 blocks, for which no allocation has room", mebibyte, 8192, 1, 17},
       BITNET_OUT_OF_DEVICE_MEMORY,
       {"the keys of a layer take 8704 bytes", "sees 8192 (maxBufferSize) at once",
        "use a smaller context"}},
      {{"values of 6 tokens, 4800 bytes each", 4096, mebibyte, 6, 8},
       BITNET_OUT_OF_DEVICE_MEMORY,
       {"one value of 4864", "a kernel sees at most 4096 (maxStorageBufferBindingSize)",
        "use a smaller batch"}},
      {{"two values of 4096 bytes beside one of 2560", 4096, 8192, 5, 8},
       BITNET_OUT_OF_DEVICE_MEMORY,
       {"one value of 4096", "allocates at most 8192 (maxBufferSize) at once",
        "use a smaller batch"}},
      {{"logits of 1200 tokens", 4096, mebibyte, 1, 8, 1200},
       BITNET_OUT_OF_DEVICE_MEMORY,
       {"takes 4800 bytes", "a kernel sees at most 4096 (maxStorageBufferBindingSize)",
        "ask for fewer outputs"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at.why);
    expect_rejected(limited(row.at.binding, row.at.allocation), model_of(row.at),
                    options_of(row.at), row.status, row.said);
  }
}

// The kernel of gates reads the whole of its weight, which has two rows.
TEST(limits_of_a_device, a_weight_that_is_not_cut_is_rejected_with_its_name) {
  model m = bare();
  const uint32_t a = in(m, 256), b = in(m, 256), y = inner(m, 512);
  m.op(BITNET_OP_DELTA_GATES, {a, b}, {y}, {weight(m, BITNET_FORMAT_F32, 256, 2)});
  out(m, y);
  runner_options options = of(1);
  options.n_blocks = 8;  // 2048 bytes of keys
  const described fits(limited(2048, mebibyte), m, options);
  expect_rejected(limited(1024, mebibyte), m, options, BITNET_UNSUPPORTED,
                  {"delta_gates", "a weight of 2048 bytes",
                   "the 1024 (maxStorageBufferBindingSize) that a kernel sees"});
}

}  // namespace
}  // namespace bitnet::parity
