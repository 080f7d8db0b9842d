#include <algorithm>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

// Calls f(index of the first position among those seen, its slot, n, the first slot of the next
// run) for each run of positions that token t sees within one block, ascending. The next run of the
// last run is the first. `window`: the op's own.
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

// score_j = (q . k_j) * scale; p_j = exp(score_j - max); y = sum_j(p_j v_j) / sum_j(p_j), for seen
// positions j, ascending. Partials of sums are numbered by the index among them.
void attention_heads(const isa_form& isa, const sdk::call& c, uint64_t t, uint64_t first_head,
                     uint64_t last_head, float* scores) {
  const sdk::step_view& step = *c.step;
  const sdk::kv_storage& kv = step.kv;
  const auto layer = static_cast<uint64_t>(c.ints[attention_ints::layer]);
  const uint64_t group = last_head - first_head;
  const uint64_t kv_head = first_head / static_cast<uint64_t>(c.ints[attention_ints::n_heads] /
                                                              c.ints[attention_ints::n_kv_heads]);
  const auto head_dim = static_cast<uint64_t>(c.ints[attention_ints::head_dim]);
  const int32_t window = c.ints[attention_ints::window];
  const uint64_t context = step.sees(t, window).count();
  const uint64_t at = t * c.k + first_head * head_dim;
  const float* q = c.input<float>(0) + at;
  float* y = c.output<float>(0) + at;

  each_run(step, t, window, [&](uint64_t first, uint64_t slot, uint64_t n, uint64_t next) {
    isa.dense({.format = static_cast<uint32_t>(kv_format_of(kv.dtype_k)),
               .w = kv.k(layer, slot, kv_head),
               .w_stride = kv.k_bytes,
               .x = q,
               .x_stride = head_dim,
               .y = scores + first,
               .y_stride = context,
               .k = head_dim,
               .rows = n,
               .tokens = group,
               .next = kv.k(layer, next, kv_head)});
  });
  constexpr uint64_t together = 16;  // heads whose sums are kept on the stack; more take turns
  for (uint64_t h = 0; h < group; h += together) {
    const uint64_t heads = std::min(together, group - h);
    float sums[together];
    for (uint64_t i = 0; i < heads; ++i)
      sums[i] = isa.rows.softmax(scores + (h + i) * context, context, c.floats[0]);
    float* out = y + h * head_dim;
    std::fill(out, out + heads * head_dim, 0.0f);
    each_run(step, t, window, [&](uint64_t first, uint64_t slot, uint64_t n, uint64_t next) {
      isa.weighted_sum({.format = kv_format_of(kv.dtype_v),
                        .v = kv.v(layer, slot, kv_head),
                        .v_stride = kv.v_bytes,
                        .p = scores + h * context + first,
                        .p_stride = context,
                        .y = out,
                        .y_stride = head_dim,
                        .rows = n,
                        .width = head_dim,
                        .heads = heads,
                        .next = kv.v(layer, next, kv_head)});
    });
    for (uint64_t i = 0; i < heads; ++i)
      for (uint64_t d = 0; d < head_dim; ++d) out[i * head_dim + d] /= sums[i];
  }
}

namespace {

// Elements: it bounds arrays of 16 and 32 KiB on the stack. Tokens of wider heads are computed one
// by one.
constexpr uint64_t widest_head = 256;
constexpr uint64_t values_at_once = 32;  // in the first-level cache, with one row of q and of y
constexpr uint64_t most_together = 32;   // tokens; turning keys then takes 1 to 2 % of the time
constexpr uint64_t fewest_together = 4;  // with fewer, turning keys takes longer than it saves
constexpr uint64_t cut_tokens = fewest_together;  // of a sequence; shares are cut at multiples
constexpr uint64_t most_rows = 512;  // heads of tokens, whose sums take 2 KiB of the stack
constexpr uint64_t most_heads = most_rows / fewest_together;  // of one KV head

using sight = sdk::step_view::sight;

// The positions that token t sees. If they are one range, it is [first, end).
sight seen_by(const sdk::call& c, uint64_t t) {
  sight s = c.step->sees(t, c.ints[attention_ints::window]);
  const bool without_gap = s.kept == s.first;
  if (without_gap) s.first = s.kept_from;
  if (without_gap || s.kept == s.kept_from) s.kept_from = s.kept = 0;
  return s;
}

// Consecutive tokens of a sequence, and the heads of one KV head. All tokens see the same kept
// positions; of the other positions each token sees those up to its own.
struct attention_block {
  const isa_form& isa;
  const sdk::call& c;
  uint64_t kv_head, group, first, tokens;
  float* scores;  // (tokens, group, stride): in the order of the positions that the token sees
  uint64_t stride;

  const sdk::kv_storage& kv() const { return c.step->kv; }
  uint64_t layer() const { return static_cast<uint64_t>(c.ints[attention_ints::layer]); }
  uint64_t head_dim() const { return static_cast<uint64_t>(c.ints[attention_ints::head_dim]); }
  sight sees(uint64_t t) const { return seen_by(c, first + t); }
  uint64_t slot(uint64_t position) const {
    const uint64_t n = kv().block_tokens;
    return static_cast<uint64_t>(c.step->blocks_of(first)[position / n]) * n + position % n;
  }
  float* scores_of(uint64_t t) const { return scores + t * group * stride; }
  uint64_t at(uint64_t t) const { return (first + t) * c.k + kv_head * group * head_dim(); }
};

// The part of some positions that a token sees. `index` is the number of the part's first position
// among all positions that the token sees.
struct seen_part {
  uint64_t from, end, index;
};
seen_part part_of(const sight& s, uint64_t from, uint64_t end) {
  if (from < s.kept)
    return {std::max(from, s.kept_from), std::min(end, s.kept), from - s.kept_from};
  const uint64_t begin = std::max(from, s.first);
  return {begin, std::min(end, s.end), s.kept - s.kept_from + begin - s.first};
}

// Scores of the positions [from, end). Every position is seen by some token; either all are kept
// positions, or none is.
void score(const attention_block& b, uint64_t from, uint64_t end) {
  alignas(64) float turned[widest_head * keys_at_once];
  float aside[most_heads * keys_at_once];
  keys_tile keys{kv_format_of(b.kv().dtype_k), {}, b.head_dim(), turned};
  const float* q = b.c.input<float>(0);
  for (uint64_t p = from; p < end; p += keys_at_once) {
    for (uint64_t i = 0; i < keys_at_once; ++i)  // the last key is repeated
      keys.rows[i] = b.kv().k(b.layer(), b.slot(std::min(p + i, end - 1)), b.kv_head);
    b.isa.attention.turn_keys(keys);
    for (uint64_t t = 0; t < b.tokens; ++t) {
      const seen_part seen = part_of(b.sees(t), p, std::min(p + keys_at_once, end));
      if (seen.from >= seen.end) continue;
      float* y = b.scores_of(t) + seen.index;
      scores_tile tile{turned, q + b.at(t), b.head_dim(), y, b.stride, b.head_dim(), b.group};
      if (seen.from == p) {  // scores after the last position are overwritten later, or never read
        b.isa.attention.scores(tile);
        continue;
      }
      tile.y = aside;
      tile.y_stride = keys_at_once;
      b.isa.attention.scores(tile);
      for (uint64_t h = 0; h < b.group; ++h)
        std::copy_n(aside + h * keys_at_once + (seen.from - p), seen.end - seen.from,
                    y + h * b.stride);
    }
  }
}

// y += the values times their weights, for positions as in score(). f16 is widened once for all
// tokens.
void add_values(const attention_block& b, uint64_t from, uint64_t end) {
  alignas(64) float wide[widest_head * values_at_once];
  const sdk::kv_storage& kv = b.kv();
  const bool halves = kv.dtype_v == BITNET_DTYPE_F16;
  float* y = b.c.output<float>(0);
  weighted_rows sum{};
  sum.format = halves ? kv_format::f32 : kv_format_of(kv.dtype_v);
  sum.v_stride = halves ? b.head_dim() * sizeof(float) : kv.v_bytes;
  sum.p_stride = b.stride;
  sum.width = sum.y_stride = b.head_dim();
  sum.heads = b.group;
  uint64_t n = 0;
  for (uint64_t p = from; p < end; p += n) {
    n = std::min({values_at_once, kv.block_tokens - p % kv.block_tokens, end - p});
    const uint8_t* v = kv.v(b.layer(), b.slot(p), b.kv_head);
    if (halves) b.isa.rows.widen(v, n * b.head_dim(), wide);
    if (halves) v = reinterpret_cast<const uint8_t*>(wide);
    for (uint64_t t = 0; t < b.tokens; ++t) {
      const seen_part seen = part_of(b.sees(t), p, p + n);
      if (seen.from >= seen.end) continue;
      sum.v = v + (seen.from - p) * sum.v_stride;
      sum.rows = seen.end - seen.from;
      sum.p = b.scores_of(t) + seen.index;
      sum.y = y + b.at(t);
      b.isa.weighted_sum(sum);
    }
  }
}

// Computes the same as attention_heads(), with each token's sums in the same order. Keys and values
// are read once for all tokens.
void attend(const attention_block& b) {
  const sight early = b.sees(0);
  const uint64_t end = b.sees(b.tokens - 1).end;
  score(b, early.kept_from, early.kept);
  score(b, early.first, end);
  float sums[most_rows];
  float* y = b.c.output<float>(0);
  const uint64_t width = b.group * b.head_dim();
  for (uint64_t t = 0; t < b.tokens; ++t) {
    for (uint64_t h = 0; h < b.group; ++h)
      sums[t * b.group + h] =
          b.isa.rows.softmax(b.scores_of(t) + h * b.stride, b.sees(t).count(), b.c.floats[0]);
    std::fill_n(y + b.at(t), width, 0.0f);
  }
  add_values(b, early.kept_from, early.kept);
  add_values(b, early.first, end);
  for (uint64_t t = 0; t < b.tokens; ++t)
    for (uint64_t i = 0; i < width; ++i) y[b.at(t) + i] /= sums[t * b.group + i / b.head_dim()];
}

// Number of tokens from t on, at most `most`, that can form a block, and its stride; 0: none.
uint64_t block_from(const isa_form& isa, const sdk::call& c, uint64_t t, uint64_t most,
                    uint64_t room, uint64_t& stride) {
  const sdk::step_view& step = *c.step;
  const auto group =
      static_cast<uint64_t>(c.ints[attention_ints::n_heads] / c.ints[attention_ints::n_kv_heads]);
  const auto head_dim = static_cast<uint64_t>(c.ints[attention_ints::head_dim]);
  if (isa.attention.scores == nullptr || head_dim % 16 != 0 || head_dim > widest_head ||
      group > most_heads)
    return 0;
  most = std::min({most, most_together, most_rows / group});
  const sight early = seen_by(c, t);
  uint64_t n = 0;
  for (; n < most; ++n) {
    if (step.sequences[t + n] != step.sequences[t]) break;
    if (step.positions[t + n] != step.positions[t] + static_cast<int32_t>(n)) break;
    const sight seen = seen_by(c, t + n);
    if (seen.kept_from != early.kept_from || seen.kept != early.kept) break;
    // Scores are written sixteen at a time, from any position.
    const uint64_t after = seen.first == 0 ? 0 : keys_at_once;
    const uint64_t needed = (seen.count() + keys_at_once - 1) / keys_at_once * keys_at_once + after;
    if ((n + 1) * group * std::max(stride, needed) > room) break;
    stride = std::max(stride, needed);
  }
  return n < fewest_together ? 0 : n;
}

// True if token t of the step continues the sequence of the token before it.
bool follows(const sdk::step_view& step, uint64_t t) {
  return t != 0 && step.sequences[t] == step.sequences[t - 1] &&
         step.positions[t] == step.positions[t - 1] + 1;
}

// The first unit from `at` on, at most `end`, where shares may be cut. A run of a sequence's tokens
// is cut only into parts of cut_tokens, so that keys and values are read for several tokens at
// once.
uint64_t next_cut(const sdk::call& c, uint64_t at, uint64_t end) {
  uint64_t t = at % c.rows, run = 0;  // tokens of the run before t
  while (follows(*c.step, t - run)) ++run;
  for (; at < end && run % cut_tokens != 0; ++at) {
    t = t + 1 == c.rows ? 0 : t + 1;
    run = follows(*c.step, t) ? run + 1 : 0;
  }
  return at;
}

}  // namespace

void attention_of_tokens(const isa_form& isa, const sdk::call& c, const sdk::share& s) {
  const auto heads = static_cast<uint64_t>(c.ints[attention_ints::n_heads]),
             kv_heads = static_cast<uint64_t>(c.ints[attention_ints::n_kv_heads]);
  const uint64_t group = heads / kv_heads, units = c.rows * kv_heads;
  const uint64_t last = next_cut(c, s.last, units);
  for (uint64_t at = next_cut(c, s.first, units); at < last;) {
    const uint64_t kv_head = at / c.rows, t = at % c.rows;
    const uint64_t most = std::min(last - at, c.rows - t);
    uint64_t stride = 0;
    uint64_t n = block_from(isa, c, t, most, s.scratch_floats, stride);
    if (n != 0) {
      attend({isa, c, kv_head, group, t, n, s.scratch, stride});
    } else {
      n = 1;
      attention_heads(isa, c, t, kv_head * group, (kv_head + 1) * group, s.scratch);
    }
    at += n;
  }
}

void attention(const isa_form& isa, const sdk::call& c, uint64_t first, uint64_t last,
               float* scores) {
  const auto heads = static_cast<uint64_t>(c.ints[attention_ints::n_heads]);
  const uint64_t group = heads / static_cast<uint64_t>(c.ints[attention_ints::n_kv_heads]);
  while (first < last) {
    const uint64_t head = first % heads;
    const uint64_t n = std::min(group - head % group, last - first);  // of one KV head
    attention_heads(isa, c, first / heads, head, head + n, scores);
    first += n;
  }
}

}  // namespace bitnet::cpu
