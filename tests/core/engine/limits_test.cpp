// What a session of some options gets of a model, and the pools and programs that follow from it.
#include "engine/limits.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bitnet::engine {
namespace {

// Four layers; a token's keys and values are 2048 bytes in f16, so a block's 131072.
model::hyperparameters shape() {
  model::hyperparameters h;
  h.n_vocab = 1000;
  h.n_embedding = 256;
  h.n_context = 8192;
  h.n_layers = 4;
  h.n_kv_heads = 2;
  h.head_dim = 64;
  return h;
}
constexpr uint64_t block_bytes = 131072;

// Every second layer keeps a state: of the two that do, 136 floats each.
model::hyperparameters hybrid() {
  model::hyperparameters h = shape();
  h.recurrent = {true, false, true, false};
  h.recurrence = {.taps = 4, .key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8};
  return h;
}
constexpr uint64_t states_bytes = 2 * 2 * 136 * 4;  // the sequence's, and a copy of an earlier one

session_options asks(uint32_t n_context, uint32_t n_batch = 512, uint32_t window = 0,
                     uint32_t window_keep = 0) {
  session_options o;
  o.n_context = n_context;
  o.n_batch = n_batch;
  o.window = window;
  o.window_keep = window_keep;
  return o;
}

TEST(limits, follow_from_options_model_and_budget) {
  const struct {
    session_options asked;
    uint32_t trained;
    uint64_t budget;
    uint32_t n_context, n_batch, window, n_blocks;
    const char* why;
  } rows[] = {
      {asks(0), 8192, 0, 4096, 512, 0, 64, "the context is not the longest unless it is asked for"},
      {asks(0), 1024, 0, 1024, 512, 0, 16, "nor longer than the model was trained for"},
      {asks(16384), 8192, 0, 16384, 512, 0, 256, "what is asked for holds"},
      {asks(100), 8192, 0, 100, 100, 0, 2, "a step is no longer than the context"},
      {asks(100, 0), 8192, 0, 100, 100, 0, 2, "no batch is the usual one"},
      {asks(100, 7), 8192, 0, 100, 7, 0, 2, "a small step"},
      {asks(0), 8192, 3 * block_bytes, 192, 192, 0, 3, "a default length is bounded by the budget"},
      {asks(192), 8192, 3 * block_bytes, 192, 192, 0, 3, "all of the budget"},
      {asks(0, 512, 128), 8192, 0, 8192, 128, 128, 5,
       "a window bounds the step, and a step of 128 sees 255 tokens, which begin anywhere"},
      {asks(0, 512, 128, 64), 8192, 0, 8192, 128, 128, 6, "and what stays in view"},
      {asks(0, 1, 128), 8192, 0, 8192, 1, 128, 3, "128 tokens that begin anywhere"},
      {asks(128, 512, 128, 64), 8192, 0, 128, 128, 0, 2, "a context that fits has no window"},
  };
  for (const auto& row : rows) {
    model::hyperparameters h = shape();
    h.n_context = row.trained;
    const auto l = limits_of(h, row.asked, BITNET_ATTENTION_WINDOW, row.budget);
    ASSERT_TRUE(l) << row.why << ": " << l.error().message;
    EXPECT_EQ(l->n_context, row.n_context) << row.why;
    EXPECT_EQ(l->n_batch, row.n_batch) << row.why;
    EXPECT_EQ(l->window, row.window) << row.why;
    EXPECT_EQ(l->n_blocks, row.n_blocks) << row.why;
    EXPECT_EQ(l->block_bytes, block_bytes);
    EXPECT_EQ(l->states_bytes, 0U);
  }
}

// A step of many sequences has more tokens than one of them can have in it.
TEST(limits, of_many_sequences_bound_a_step_by_what_all_of_them_can_have_in_it) {
  const struct {
    session_options asked;
    uint32_t max_sequences;
    uint32_t n_batch, n_blocks;
    const char* why;
  } rows[] = {
      {asks(100), 1, 100, 2, "one sequence has no more than its context"},
      {asks(100), 3, 300, 2, "three have three contexts; blocks are counted for one"},
      {asks(100), 32, 512, 2, "what is asked for, where the sequences can have more"},
      {asks(100, 7), 32, 7, 2, "a small step stays as it is asked for"},
      {asks(1), 32, 32, 1, "one token of each"},
      {asks(4096), 32, 512, 64, "a long context bounds nothing"},
      {asks(8192, 512, 128), 1, 128, 5, "of a window its whole blocks"},
      {asks(8192, 512, 128), 2, 256, 5, "twice; of each there are 255 tokens as before"},
      {asks(8192, 512, 128), 32, 512, 5, "what is asked for"},
      {asks(100, 512, 65), 1, 100, 2, "a context that ends within the blocks of its window"},
      {asks(100, 512, 65), 3, 300, 2, "likewise"},
      {asks(1U << 20, 1U << 16), 1024, 1U << 16, 1U << 14, "no overflow at the largest sizes"},
  };
  for (const auto& row : rows) {
    const auto l = limits_of(shape(), row.asked, BITNET_ATTENTION_WINDOW, 0, row.max_sequences);
    ASSERT_TRUE(l) << row.why << ": " << l.error().message;
    EXPECT_EQ(l->n_batch, row.n_batch) << row.why;
    EXPECT_EQ(l->n_blocks, row.n_blocks) << row.why;
    EXPECT_LE(l->max_outputs, l->n_batch) << row.why;
    const program_bounds bounds(row.asked, *l, row.max_sequences);
    EXPECT_EQ(bounds.get().max_tokens, row.n_batch) << row.why;
  }
}

TEST(limits, impossible_options_are_rejected) {
  const struct {
    session_options asked;
    uint32_t attention_flags;
    uint64_t budget;
    bitnet_status status;
    const char* words;
  } rows[] = {
      {asks((1U << 20) + 1), 0, 0, BITNET_INVALID_ARGUMENT, "choose another n_context"},
      {asks(1U << 20, (1U << 16) + 1), 0, 0, BITNET_INVALID_ARGUMENT, "choose another n_batch"},
      {asks(0, 512, 0, 4), BITNET_ATTENTION_WINDOW, 0, BITNET_INVALID_ARGUMENT, "set window too"},
      {asks(0, 512, 128), 0, 0, BITNET_UNSUPPORTED, "leave window 0"},
      {asks(193), 0, 3 * block_bytes, BITNET_OUT_OF_MEMORY, "256 tokens take 524288 bytes"},
      {asks(0), 0, block_bytes - 1, BITNET_OUT_OF_MEMORY, "4096 tokens take 8388608 bytes"},
  };
  for (const auto& row : rows) {
    const auto l = limits_of(shape(), row.asked, row.attention_flags, row.budget);
    ASSERT_FALSE(l) << row.words;
    EXPECT_EQ(l.error().status, row.status) << row.words;
    EXPECT_NE(l.error().message.find(row.words), std::string::npos) << l.error().message;
  }
}

TEST(limits, of_rows_are_what_host_memory_has_room_for) {
  model::hyperparameters h = shape();
  EXPECT_EQ(limits_of(h, asks(0), 0, 0)->max_outputs, 512U) << "a step's tokens at most";
  h.n_vocab = 128256;
  const auto wide = limits_of(h, asks(0), 0, 0);
  EXPECT_EQ(wide->row_floats, 128256U);
  EXPECT_EQ(wide->max_outputs, 130U) << "of 513024 bytes each in 64 MiB";
  h.n_vocab = 1U << 25;
  EXPECT_EQ(limits_of(h, asks(0), 0, 0)->max_outputs, 1U) << "one, however wide";
  session_options o = asks(0);
  o.embeddings = true;
  EXPECT_EQ(limits_of(h, o, 0, 0)->row_floats, 256U) << "a hidden state";
}

TEST(limits, know_smaller_types_and_states) {
  session_options o = asks(64);
  o.dtype_k = BITNET_DTYPE_Q8_0;
  EXPECT_EQ(limits_of(shape(), o, 0, 0)->block_bytes, 64U * 4 * 2 * (2 * 34 + 128));
  const auto l = limits_of(hybrid(), asks(64), 0, 0);
  EXPECT_EQ(l->block_bytes, block_bytes / 2) << "half of the layers attend";
  EXPECT_EQ(l->states_bytes, states_bytes);
  const auto tight = limits_of(hybrid(), asks(0), 0, states_bytes + block_bytes);
  EXPECT_EQ(tight->n_context, 128U) << "two blocks beside the states";
  const auto none = limits_of(hybrid(), asks(0), 0, states_bytes);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, BITNET_OUT_OF_MEMORY);
}

TEST(kv_types, are_known_and_make_whole_heads) {
  const struct {
    uint32_t head_dim, of_device, k, v;
    bitnet_status status;
    const char* words;
  } rows[] = {
      {64, 0, BITNET_DTYPE_F32, BITNET_DTYPE_F16, BITNET_OK, "a device that says nothing has both"},
      {64, 1U << BITNET_DTYPE_Q4_0, BITNET_DTYPE_Q4_0, BITNET_DTYPE_Q4_0, BITNET_OK, "it says so"},
      {48, UINT32_MAX, BITNET_DTYPE_Q8_0, BITNET_DTYPE_F16, BITNET_UNSUPPORTED, "use kv_k f16"},
      {48, UINT32_MAX, BITNET_DTYPE_F16, BITNET_DTYPE_Q4_0, BITNET_UNSUPPORTED, "use kv_v f16"},
      {64, UINT32_MAX, BITNET_DTYPE_I8, BITNET_DTYPE_F16, BITNET_INVALID_ARGUMENT, "no KV type"},
  };
  for (const auto& row : rows) {
    model::hyperparameters h = shape();
    h.head_dim = row.head_dim;
    select::choice c{};
    c.device.kv_dtypes = row.of_device;
    session_options o;
    o.dtype_k = row.k;
    o.dtype_v = row.v;
    const auto ok = check_kv_types(c, h, o);
    EXPECT_EQ(ok ? BITNET_OK : ok.error().status, row.status) << row.words;
    const std::string said = ok ? row.words : ok.error().message;
    EXPECT_NE(said.find(row.words), std::string::npos) << said;
  }
}

TEST(kv_pool, is_for_one_session_or_for_those_that_share_a_budget) {
  const session_options o = asks(128);
  const auto alone = pool_of(hybrid(), o, *limits_of(hybrid(), o, 0, 0), 0);
  EXPECT_EQ(alone.n_layers, 2U) << "those that attend";
  EXPECT_EQ(alone.n_blocks, 2U);
  EXPECT_EQ(alone.n_states, 2U);
  EXPECT_EQ(alone.state_elements, 272U);
  EXPECT_EQ(state_bytes(alone), 1088U);

  // For three sessions at the end of their context, and one block more.
  const uint64_t each = states_bytes + block_bytes;
  const uint64_t budget = 3 * each + block_bytes / 2;
  const auto shared = pool_of(hybrid(), o, *limits_of(hybrid(), o, 0, budget), budget);
  EXPECT_EQ(shared.n_states, 6U);
  EXPECT_EQ(shared.n_blocks, 7U);
}

TEST(kv_pool, of_a_section_has_its_layers) {
  const model::hyperparameters h = hybrid();
  const session_options o = asks(128);
  const auto all = pool_of(h, o, *limits_of(h, o, 0, 0), 0);
  const auto both = pool_of(all, h, {.first = 1, .last = 3});
  EXPECT_EQ(both.n_layers, 1U);
  EXPECT_EQ(both.n_blocks, 2U);
  EXPECT_EQ(both.state_elements, 136U);
  EXPECT_EQ(both.n_states, 2U);
  const auto keys = pool_of(all, h, {.first = 3, .last = 4});
  EXPECT_EQ(keys.n_layers, 1U);
  EXPECT_EQ(keys.n_states, 0U);
  const auto states = pool_of(all, h, {.first = 0, .last = 1});
  EXPECT_EQ(states.n_layers, 1U) << "the contract knows no pool without layers";
  EXPECT_EQ(states.n_blocks, 1U);
  EXPECT_EQ(states.n_states, 2U);
}

TEST(program_bounds, have_buckets_for_decoding_and_for_prompts) {
  const struct {
    uint32_t n_batch, n_sequences;
    std::vector<uint32_t> buckets;
    const char* why;
  } rows[] = {{512, 1, {1, 512}, "a token, or a prompt"},
              {512, 12, {1, 2, 4, 8, 16, 512}, "up to a token of each sequence"},
              {8, 16, {1, 2, 4, 8}, "none beyond the step"},
              {1, 1, {1}, "none twice"}};
  for (const auto& row : rows) {
    const auto l = limits_of(shape(), asks(4096, row.n_batch), 0, 0);
    ASSERT_TRUE(l) << row.why;
    const program_bounds bounds(asks(0), *l, row.n_sequences);
    const bitnet_program_options& o = bounds.get();
    EXPECT_EQ(std::vector(o.buckets, o.buckets + o.n_buckets), row.buckets) << row.why;
    EXPECT_EQ(o.max_tokens, row.n_batch) << row.why;
    EXPECT_EQ(o.max_sequences, row.n_sequences) << row.why;
    EXPECT_EQ(o.max_blocks, 64U) << row.why;
  }
}

}  // namespace
}  // namespace bitnet::engine
