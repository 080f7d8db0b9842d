#include "reference/sequences.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/attention.hpp"

namespace bitnet::conformance {
namespace {

constexpr float score_scale = 0.25f;

uint32_t comes_in(model& m, int64_t width) {
  const uint32_t v = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, width);
  m.more_ports.push_back({BITNET_PORT_VALUE_IN, v});
  return v;
}
uint32_t goes_out(model& m, int64_t width) {
  const uint32_t v = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, width);
  m.more_ports.push_back({BITNET_PORT_VALUE_OUT, v});
  return v;
}
void gather(model& m, uint32_t x) {
  m.logits = m.value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, m.values[x].dims[1]);
  m.op(BITNET_OP_GATHER_ROWS, {x}, {m.logits});
}

float whole(std::mt19937& random, int32_t most) {
  const auto n = static_cast<uint32_t>(2 * most + 1);
  return static_cast<float>(static_cast<int32_t>(random() % n) - most);
}

// Calls f(row of the step, position, slice) for each token.
template <class Function>
void each_token(const planned_step& step, Function f) {
  uint64_t t = 0;
  for (const slice& s : step.slices)
    for (uint32_t i = 0; i < s.tokens.size(); ++i) f(t++, s.first + i, s);
}

}  // namespace

void pool_contents::fill(std::mt19937& random) {
  for (std::vector<uint8_t>& block : blocks) {
    block.clear();
    for (uint64_t layer = 0; layer < layout.layers; ++layer)
      for (const uint32_t dtype : {layout.dtype_k, layout.dtype_v})
        for (uint64_t i = 0; i < layout.heads * layout.block_tokens; ++i) {
          std::vector<float> x(layout.head_dim);
          for (float& v : x) v = uniform(random, -2, 2);
          const std::vector<uint8_t> packed = kv_pack(dtype, x);
          block.insert(block.end(), packed.begin(), packed.end());
        }
  }
  for (std::vector<float>& state : states)
    for (float& v : state) v = whole(random, 8);
}

void pool_contents::move(const planned_step& step) {
  const auto b = blocks;
  for (const block_move& m : step.blocks) blocks[m.to] = b[m.from];
  const auto s = states;
  for (const block_move& m : step.states)
    if (!states.empty()) states[m.to] = s[m.from];
}

std::vector<uint8_t> pool_contents::bytes() const {
  std::vector<uint8_t> out;
  for (const std::vector<uint8_t>& block : blocks)
    out.insert(out.end(), block.begin(), block.end());
  for (const std::vector<float>& state : states) {
    const auto* from = reinterpret_cast<const uint8_t*>(state.data());
    out.insert(out.end(), from, from + state.size() * sizeof(float));
  }
  return out;
}

std::string expected_rows::wrong(const char* what, std::span<const float> found) const {
  uint64_t n = 0, first = 0;
  for (uint64_t i = 0; i < expected.size(); ++i) {
    const double off = std::fabs(static_cast<double>(found[i]) - expected[i]);
    if (off <= allowed[i]) continue;  // false for NaN
    if (n++ == 0) first = i;
  }
  if (n == 0) return "";
  char text[160];
  std::snprintf(text, sizeof text, " %llu is %.9g, expected %.9g within %.3g; %llu of %llu are off",
                static_cast<unsigned long long>(first), static_cast<double>(found[first]),
                expected[first], allowed[first], static_cast<unsigned long long>(n),
                static_cast<unsigned long long>(expected.size()));
  return what + std::string(text);
}

expected_rows expected_rows::of(std::span<const uint32_t> rows, uint64_t width) const {
  expected_rows out;
  for (const uint32_t row : rows)
    for (uint64_t i = row * width; i < (row + 1) * width; ++i) {
      out.expected.push_back(expected[i]);
      out.allowed.push_back(allowed[i]);
    }
  return out;
}

keys_graph::keys_graph(int32_t window) : layer_window(static_cast<uint32_t>(window)) {
  graph.kv_layers = layers;
  graph.kv_heads = kv_heads;
  graph.head_dim = head_dim;
  const uint32_t q = comes_in(graph, width);
  const uint32_t k = comes_in(graph, kv_width), v = comes_in(graph, kv_width);
  uint32_t y = BITNET_NONE;
  for (int32_t layer = 0; layer < static_cast<int32_t>(layers); ++layer) {
    const bool second = layer == 1;
    graph.op(BITNET_OP_KV_WRITE, {second ? v : k, second ? k : v}, {}).ints[0] = layer;
    y = goes_out(graph, width);
    bitnet_op& attention = graph.op(BITNET_OP_ATTN_PAGED, {q}, {y});
    const int32_t ints[] = {layer, heads, kv_heads, head_dim, second ? window : 0};
    std::copy(std::begin(ints), std::end(ints), attention.ints);
    attention.floats[0] = score_scale;
  }
  gather(graph, y);
}

void keys_graph::inputs(uint32_t tokens, std::mt19937& random,
                        std::span<const std::span<float>> in) const {
  for (std::size_t i = 0; i < in.size(); ++i)
    for (float& x : in[i].first(tokens * ports[i].width)) x = uniform(random, -2, 2);
}

namespace {

// One head of the keys or values of a position, as it is kept.
std::vector<double> kept(const pool_contents& pool, const slice& s, uint32_t position, bool value,
                         uint64_t layer, uint64_t head) {
  const kv_layout& l = pool.layout;
  const std::vector<uint8_t>& block = pool.blocks[s.blocks[position / l.block_tokens]];
  const uint8_t* at = block.data() + l.at(value, layer, head, position % l.block_tokens);
  std::vector<double> out;
  out.reserve(l.head_dim);
  for (uint64_t i = 0; i < l.head_dim; ++i)
    out.push_back(kv_element(value ? l.dtype_v : l.dtype_k, at, i));
  return out;
}

}  // namespace

std::vector<expected_rows> keys_graph::step(const planned_step& step, const step_inputs& in,
                                            pool_contents& pool) const {
  const kv_layout& l = pool.layout;
  each_token(step, [&](uint64_t t, uint32_t p, const slice& s) {
    std::vector<uint8_t>& block = pool.blocks[s.blocks[p / l.block_tokens]];
    for (uint64_t layer = 0; layer < layers; ++layer)
      for (uint64_t h = 0; h < kv_heads; ++h)
        for (const bool value : {false, true}) {
          const auto from = in[(value != (layer == 1)) ? 2 : 1];  // values, or keys
          std::ranges::copy(kv_pack(value ? l.dtype_v : l.dtype_k,
                                    from.subspan(t * kv_width + h * head_dim, head_dim)),
                            block.begin() + static_cast<std::ptrdiff_t>(
                                                l.at(value, layer, h, p % l.block_tokens)));
        }
  });
  std::vector<expected_rows> out(layers);
  each_token(step, [&](uint64_t t, uint32_t own, const slice& s) {
    for (uint64_t layer = 0; layer < layers; ++layer)
      for (uint64_t h = 0; h < heads; ++h) {
        std::vector<std::vector<double>> store;
        for (uint32_t p = 0; p <= own; ++p) {
          if (step.window != 0 && p + step.window <= own && p >= step.window_keep) continue;
          if (layer == 1 && layer_window != 0 && own - p >= layer_window) continue;
          for (const bool value : {false, true})
            store.push_back(kept(pool, s, p, value, layer, h / (heads / kv_heads)));
        }
        std::vector<const double*> seen_keys, seen_values;
        for (std::size_t i = 0; i < store.size(); i += 2) {
          seen_keys.push_back(store[i].data());
          seen_values.push_back(store[i + 1].data());
        }
        attend_head(in[0].subspan(t * width + h * head_dim, head_dim), seen_keys, seen_values,
                    static_cast<double>(score_scale), out[layer].expected, out[layer].allowed);
      }
  });
  return out;
}

states_graph::states_graph() {
  std::mt19937 random(5);
  for (uint32_t i = 0; i < conv_width * taps; ++i) factors.push_back(whole(random, 4) / 4);
  const uint32_t x = comes_in(graph, conv_width), z = comes_in(graph, rule_width);
  const uint32_t g = comes_in(graph, int64_t{2} * n_v);
  const uint32_t mixed = goes_out(graph, conv_width), y = goes_out(graph, int64_t{n_v} * d_v);
  graph.op(BITNET_OP_SHORT_CONV, {x}, {mixed}, {graph.matrix_f32(taps, conv_width, factors)})
      .ints[0] = conv_at;
  bitnet_op& rule = graph.op(BITNET_OP_DELTA_RULE, {z, g}, {y});
  const int32_t ints[] = {rule_at, 1, n_v, d_k, d_v, BITNET_DELTA_BLOCKS};
  std::copy(std::begin(ints), std::end(ints), rule.ints);
  rule.floats[0] = 1;
  rule.floats[1] = 0;
  graph.state_elements = elements;
  gather(graph, y);
}

void states_graph::inputs(uint32_t tokens, std::mt19937& random,
                          std::span<const std::span<float>> in) const {
  const std::span<float> conv = in[0], rule = in[1], gates = in[2];
  for (float& x : conv.first(uint64_t{tokens} * conv_width)) x = whole(random, 8);
  for (uint64_t t = 0; t < tokens; ++t) {
    const std::span<float> row = rule.subspan(t * rule_width, rule_width);
    std::ranges::fill(row.first(uint64_t{2} * d_k), 0.0f);
    row[random() % d_k] = 1;
    row[d_k + random() % d_k] = 1;
    for (float& v : row.subspan(uint64_t{2} * d_k)) v = whole(random, 8);
    for (uint32_t h = 0; h < n_v; ++h) {
      gates[t * 2 * n_v + h] = random() % 8 == 0 ? 0.5f : 1.0f;
      gates[t * 2 * n_v + n_v + h] = random() % 4 == 0 ? 0.0f : 1.0f;
    }
  }
}

namespace {

// One token of SHORT_CONV; the state's part then ends in its row.
void convolve(std::span<float> state, std::span<const float> x, const std::vector<float>& factors,
              expected_rows& out) {
  const uint64_t k = x.size(), n = factors.size() / k;
  for (uint64_t c = 0; c < k; ++c) {
    double sum = static_cast<double>(factors[c * n + n - 1]) * static_cast<double>(x[c]);
    for (uint64_t i = 0; i + 1 < n; ++i)
      sum += static_cast<double>(factors[c * n + i]) * static_cast<double>(state[i * k + c]);
    out.expected.push_back(sum);
    out.allowed.push_back(0);
  }
  std::copy(state.begin() + static_cast<std::ptrdiff_t>(k), state.end(), state.begin());
  std::ranges::copy(x, state.end() - static_cast<std::ptrdiff_t>(k));
}

// One token of DELTA_RULE, of one head of values.
void learn(std::span<float> s, std::span<const float> q, std::span<const float> k,
           std::span<const float> v, float decay, float beta, expected_rows& out) {
  for (float& x : s) x *= decay;
  for (uint64_t j = 0; j < v.size(); ++j) {
    float known = 0;
    for (uint64_t i = 0; i < k.size(); ++i) known += k[i] * s[i * v.size() + j];
    const float u = beta * (v[j] - known);
    float y = 0;
    for (uint64_t i = 0; i < k.size(); ++i) {
      s[i * v.size() + j] += k[i] * u;
      y += q[i] * s[i * v.size() + j];
    }
    out.expected.push_back(static_cast<double>(y));
    out.allowed.push_back(std::fabs(static_cast<double>(y)) * 1e-6);  // a root of a GPU's
  }
}

}  // namespace

std::vector<expected_rows> states_graph::step(const planned_step& step, const step_inputs& in,
                                              pool_contents& pool) const {
  const std::span<const float> conv = in[0], rule = in[1], gates = in[2];
  std::vector<expected_rows> out(2);
  each_token(step, [&](uint64_t t, uint32_t p, const slice& s) {
    std::vector<float>& state = pool.states[s.state];
    const std::span all(state);
    const std::span past = all.subspan(conv_at, uint64_t{taps - 1} * conv_width);
    const std::span kept = all.subspan(rule_at, uint64_t{n_v} * d_k * d_v);
    if (p == 0) {
      std::ranges::fill(past, 0.0f);
      std::ranges::fill(kept, 0.0f);
    }
    convolve(past, conv.subspan(t * conv_width, conv_width), factors, out[0]);
    const std::span row = rule.subspan(t * rule_width, rule_width);
    const std::span gate = gates.subspan(t * 2 * n_v, uint64_t{2} * n_v);
    for (uint64_t h = 0; h < n_v; ++h)
      learn(kept.subspan(h * d_k * d_v, uint64_t{d_k} * d_v), row.first(d_k), row.subspan(d_k, d_k),
            row.subspan(uint64_t{2} * d_k + h * d_v, d_v), gate[h], gate[n_v + h], out[1]);
  });
  return out;
}

}  // namespace bitnet::conformance
