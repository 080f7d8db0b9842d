#include <algorithm>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

uint32_t format_of(uint32_t dtype) {
  return dtype == BITNET_DTYPE_F32    ? BITNET_FORMAT_F32
         : dtype == BITNET_DTYPE_Q8_0 ? BITNET_FORMAT_Q8_0
         : dtype == BITNET_DTYPE_Q4_0 ? BITNET_FORMAT_Q4_0
                                      : BITNET_FORMAT_F16;
}

// Calls f(index of the first among those seen, its slot, n, the first slot of the next run) for
// each run of positions that token t sees within one block, ascending; after the last comes the
// first. `window`: the op's own.
template <class F>
void each_run(const sdk::step_view& step, uint64_t t, int32_t window, F f) {
  const uint64_t block_tokens = step.kv.block_tokens;
  const int32_t* blocks = step.blocks_of(t);
  const sdk::step_view::sight sight = step.sees(t, window);
  struct {
    uint64_t index, slot, n;
  } run{};
  uint64_t index = 0, first_slot = 0;
  const auto range = [&](uint64_t at, uint64_t end) {
    while (at < end) {
      const uint64_t n = std::min(block_tokens - at % block_tokens, end - at);
      const uint64_t slot =
          static_cast<uint64_t>(blocks[at / block_tokens]) * block_tokens + at % block_tokens;
      if (index == 0)
        first_slot = slot;
      else
        f(run.index, run.slot, run.n, slot);
      run = {index, slot, n};
      index += n;
      at += n;
    }
  };
  range(sight.kept_from, sight.kept);
  range(sight.first, sight.end);
  f(run.index, run.slot, run.n, first_slot);
}

}  // namespace

// score_j = (q . k_j) * scale; p_j = exp(score_j - max); y = sum_j(p_j v_j) / sum_j(p_j), j
// ascending over the positions that are seen, and numbered so where a sum has partials.
void attention_heads(const isa_form& isa, const sdk::call& c, uint64_t t, uint64_t first_head,
                     uint64_t last_head, float* scores) {
  const sdk::step_view& step = *c.step;
  const sdk::kv_storage& kv = step.kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  const uint64_t group = last_head - first_head;
  const uint64_t kv_head = first_head / static_cast<uint64_t>(c.ints[1] / c.ints[2]);
  const auto head_dim = static_cast<uint64_t>(c.ints[3]);
  const int32_t window = c.ints[4];
  const uint64_t context = step.sees(t, window).count();
  const uint64_t at = t * c.k + first_head * head_dim;
  const float* q = c.input<float>(0) + at;
  float* y = c.output<float>(0) + at;

  each_run(step, t, window, [&](uint64_t first, uint64_t slot, uint64_t n, uint64_t next) {
    isa.dense({format_of(kv.dtype_k), kv.k(layer, slot, kv_head), kv.k_bytes, q, head_dim,
               scores + first, context, head_dim, n, group, kv.k(layer, next, kv_head)});
  });
  constexpr uint64_t together = 16;  // heads whose sums are kept
  for (uint64_t h = 0; h < group; h += together) {
    const uint64_t heads = std::min(together, group - h);
    float sums[together];
    for (uint64_t i = 0; i < heads; ++i)
      sums[i] = isa.rows.softmax(scores + (h + i) * context, context, c.floats[0]);
    float* out = y + h * head_dim;
    std::fill(out, out + heads * head_dim, 0.0f);
    each_run(step, t, window, [&](uint64_t first, uint64_t slot, uint64_t n, uint64_t next) {
      isa.weighted_sum({format_of(kv.dtype_v), kv.v(layer, slot, kv_head), kv.v_bytes,
                        scores + h * context + first, context, out, head_dim, n, head_dim, heads,
                        kv.v(layer, next, kv_head)});
    });
    for (uint64_t i = 0; i < heads; ++i)
      for (uint64_t d = 0; d < head_dim; ++d) out[i * head_dim + d] /= sums[i];
  }
}

void attention(const isa_form& isa, const sdk::call& c, uint64_t first, uint64_t last,
               float* scores) {
  const auto heads = static_cast<uint64_t>(c.ints[1]);
  const uint64_t group = heads / static_cast<uint64_t>(c.ints[2]);
  while (first < last) {
    const uint64_t head = first % heads;
    const uint64_t n = std::min(group - head % group, last - first);  // of one KV head
    attention_heads(isa, c, first / heads, head, head + n, scores);
    first += n;
  }
}

}  // namespace bitnet::cpu
