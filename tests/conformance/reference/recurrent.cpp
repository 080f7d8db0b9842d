// COLUMNS, SHORT_CONV, DELTA_GATES and DELTA_RULE, the last three of several sequences in one step.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

// The tokens of a sequence in a step: where it stands, and whether a state is brought for it.
struct stretch {
  int32_t position;
  uint64_t tokens;
};
using stretches = std::vector<stretch>;

uint64_t tokens_of(const stretches& all) {
  return std::accumulate(all.begin(), all.end(), uint64_t{0},
                         [](uint64_t n, const stretch& s) { return n + s.tokens; });
}

std::vector<float> random_floats(uint64_t n, float size, std::mt19937& random) {
  std::vector<float> out(n);
  for (float& x : out) x = uniform(random, -size, size);
  return out;
}

// Gives a case its tokens, positions and states; what a fresh sequence finds is no number at all.
void place(op_case& c, const stretches& all, uint64_t elements, float size, std::mt19937& random) {
  all_rows(c, tokens_of(all));
  c.graph.state_elements = static_cast<uint32_t>(elements);
  int32_t sequence = 0;
  uint64_t last = 0;
  for (const stretch& s : all) {
    for (uint64_t t = 0; t < s.tokens; ++t) {
      c.sequences.push_back(sequence);
      c.positions.push_back(s.position + static_cast<int32_t>(t));
    }
    ++sequence;
    last = std::max(last, static_cast<uint64_t>(s.position) + s.tokens);
    c.states.push_back(s.position == 0 ? std::vector<float>(elements, std::nanf(""))
                                       : random_floats(elements, size, random));
  }
  c.block_tokens = 64;
  c.max_blocks = static_cast<uint32_t>(last / c.block_tokens + 1);
}

// ---- COLUMNS -----------------------------------------------------------------------------------

struct parts {
  int64_t k;
  int32_t length, first, inner, inner_stride, outer, outer_stride;
  uint64_t tokens;
  std::string why;
};

op_case columns_case(const parts& p) {
  op_case c;
  c.op = BITNET_OP_COLUMNS;
  c.why = p.why;
  std::mt19937 random(static_cast<uint32_t>(p.k + p.first));
  const auto k = static_cast<uint64_t>(p.k);
  const std::vector<float> rows = random_floats(k * p.tokens, 4, random);
  const uint32_t x = input_rows(c.graph, p.k, rows);
  const int64_t width = int64_t{p.outer} * p.inner * p.length;
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, width);
  bitnet_op& o = c.graph.op(c.op, {x}, {y});
  std::ranges::copy(std::initializer_list<int32_t>{p.length, p.first, p.inner, p.inner_stride,
                                                   p.outer, p.outer_stride},
                    o.ints);
  output_rows(c.graph, y);
  repeated_rows(c, p.tokens, p.tokens);
  for (uint64_t t = 0; t < p.tokens; ++t)
    for (int64_t i = 0; i < width; ++i) {
      const int64_t part = i / p.length;
      const int64_t at = p.first + part / p.inner * p.outer_stride +
                         part % p.inner * p.inner_stride + i % p.length;
      c.expected.push_back(static_cast<double>(rows[t * k + static_cast<uint64_t>(at)]));
    }
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

// ---- SHORT_CONV --------------------------------------------------------------------------------

op_case conv_case(uint64_t k, uint64_t n, uint64_t first, const stretches& all, std::string why) {
  op_case c;
  c.op = BITNET_OP_SHORT_CONV;
  c.format = BITNET_FORMAT_F32;
  c.why = std::move(why);
  std::mt19937 random(static_cast<uint32_t>(k * 7 + n));
  const uint64_t tokens = tokens_of(all);
  const std::vector<float> rows = random_floats(k * tokens, 3, random);
  const std::vector<float> factors = random_floats(k * n, 1, random);
  const uint32_t x = input_rows(c.graph, static_cast<int64_t>(k), rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, static_cast<int64_t>(k));
  const uint32_t w = c.graph.matrix_f32(static_cast<int64_t>(n), static_cast<int64_t>(k), factors);
  c.graph.op(c.op, {x}, {y}, {w}).ints[0] = static_cast<int32_t>(first);
  output_rows(c.graph, y);
  place(c, all, first + (n - 1) * k + 5, 3, random);
  c.expected.resize(tokens * k);
  c.allowed.resize(tokens * k);
  uint64_t before = 0;
  for (uint64_t s = 0; s < all.size(); ++s) {
    // Of column j, n - 1 numbers of the state and then those of the step.
    const auto line = [&](uint64_t at, uint64_t j) {
      if (at >= n - 1) return rows[(before + at - (n - 1)) * k + j];
      return all[s].position == 0 ? 0.0f : c.states[s][first + at * k + j];
    };
    for (uint64_t t = 0; t < all[s].tokens; ++t)
      for (uint64_t j = 0; j < k; ++j) {
        double sum = 0, sizes = 0;
        for (uint64_t i = 0; i < n; ++i) {
          const double product =
              static_cast<double>(factors[j * n + i]) * static_cast<double>(line(t + i, j));
          sum += product;
          sizes += std::fabs(product);
        }
        c.expected[(before + t) * k + j] = sum;
        c.allowed[(before + t) * k + j] = static_cast<double>(n) * unit * sizes + 1e-30;
      }
    std::vector<double>& after =
        c.expected_states.emplace_back(c.states[s].begin(), c.states[s].end());
    for (uint64_t i = 0; i < n - 1; ++i)
      for (uint64_t j = 0; j < k; ++j)
        after[first + i * k + j] = static_cast<double>(line(all[s].tokens + i, j));
    c.allowed_states.emplace_back(after.size(), 0.0);
    before += all[s].tokens;
  }
  return c;
}

// ---- DELTA_GATES -------------------------------------------------------------------------------

op_case gates_case(uint64_t heads, uint64_t tokens, float size, std::string why) {
  op_case c;
  c.op = BITNET_OP_DELTA_GATES;
  c.format = BITNET_FORMAT_F32;
  c.why = std::move(why);
  std::mt19937 random(static_cast<uint32_t>(heads * 5));
  const std::vector<float> a = random_floats(heads * tokens, size, random);
  const std::vector<float> b = random_floats(heads * tokens, size, random);
  std::vector<float> weights;
  weights.reserve(2 * heads);
  for (uint64_t h = 0; h < heads; ++h) weights.push_back(-uniform(random, 0.01f, 16));
  for (uint64_t h = 0; h < heads; ++h) weights.push_back(uniform(random, -6, 2));
  const auto width = static_cast<int64_t>(heads);
  const uint32_t x = input_rows(c.graph, width, a), other = input_rows(c.graph, width, b);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 2 * width);
  c.graph.op(c.op, {x, other}, {y}, {c.graph.matrix_f32(width, 2, weights)});
  output_rows(c.graph, y);
  repeated_rows(c, tokens, tokens);
  for (uint64_t t = 0; t < tokens; ++t) {
    for (uint64_t h = 0; h < heads; ++h) {
      const auto factor = static_cast<double>(weights[h]);
      const double z =
          static_cast<double>(a[t * heads + h]) + static_cast<double>(weights[heads + h]);
      const double small = std::exp(-std::fabs(z)), plus = std::log1p(small);
      const double softplus = std::max(z, 0.0) + plus, power = factor * softplus;
      // The sum's rounding goes through with a slope of at most 1; the exponential's error as its
      // share of 1 + exp says; the logarithm within 4 ulp; then a sum.
      const double off =
          unit * std::fabs(z) +
          small / (1 + small) * ((3 + 2 * std::fabs(z)) * ulp + unit * std::fabs(z)) +
          4 * ulp * plus + unit * softplus;
      const double decay = std::exp(power);
      c.expected.push_back(decay);
      c.allowed.push_back(decay * (std::fabs(factor) * off + unit * std::fabs(power) +
                                   (3 + 2 * std::fabs(power)) * ulp) +
                          1.2e-38);
    }
    for (uint64_t h = 0; h < heads; ++h) {
      const auto z = static_cast<double>(b[t * heads + h]);
      const double strength = 1 / (1 + std::exp(-z));
      c.expected.push_back(strength);
      c.allowed.push_back(strength * ((3 + 2 * std::fabs(z)) * ulp + unit + 2.5 * ulp) + 1.2e-38);
    }
  }
  return c;
}

// ---- DELTA_RULE --------------------------------------------------------------------------------

struct heads {
  uint64_t n_k, n_v, d_k, d_v;
  int32_t order;
};

// A number and what a right one may be off by.
struct near {
  double x = 0, off = 0;
};
near operator+(near a, near b) {
  const double sum = a.x + b.x;
  return {sum, a.off + b.off + unit * std::fabs(sum)};
}
near operator*(near a, near b) {
  const double product = a.x * b.x;
  return {product, a.off * std::fabs(b.x) + b.off * std::fabs(a.x) + a.off * b.off +
                       unit * std::fabs(product)};
}
// In any order.
near sum_of(const std::vector<near>& all) {
  double sum = 0, sizes = 0, off = 0;
  for (const near& n : all) {
    sum += n.x;
    sizes += std::fabs(n.x);
    off += n.off;
  }
  return {sum, off + static_cast<double>(all.size()) * unit * sizes};
}

// A head as it is used: times 1 / its length, and times `scale`. Of the sum of squares half an
// error comes through the root, as of eps; root 3 ulp, quotient 2.5.
std::vector<near> normalised(const float* x, uint64_t n, double eps, double scale) {
  double squares = 0;
  for (uint64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double factor = scale / std::sqrt(squares + eps);
  const double relative = unit / 2 + unit / 2 + 3 * ulp + 2.5 * ulp + (scale == 1 ? 0 : unit);
  std::vector<near> out;
  out.reserve(n);
  for (uint64_t i = 0; i < n; ++i)
    out.push_back(near{static_cast<double>(x[i]), 0} * near{factor, relative * std::fabs(factor)});
  return out;
}

// One token of one head.
void step_head(const std::vector<near>& q, const std::vector<near>& k, const float* v, near decay,
               near beta, uint64_t d_v, std::vector<near>& state, double* y, double* allowed) {
  const uint64_t d_k = q.size();
  std::vector<near> parts(d_k);
  for (uint64_t j = 0; j < d_v; ++j) {
    for (uint64_t i = 0; i < d_k; ++i) {
      near& s = state[i * d_v + j];
      s = s * decay;
      parts[i] = k[i] * s;
    }
    const near seen = sum_of(parts);
    const near u = beta * (near{static_cast<double>(v[j]), 0} + near{-seen.x, seen.off});
    for (uint64_t i = 0; i < d_k; ++i) {
      near& s = state[i * d_v + j];
      s = s + k[i] * u;
      parts[i] = q[i] * s;
    }
    const near out = sum_of(parts);
    y[j] = out.x;
    // Twice: forms that compute several tokens at once round in other places.
    allowed[j] = 2 * out.off + 1e-30;
  }
}

op_case delta_case(const heads& h, uint64_t first, const stretches& all, std::string why) {
  op_case c;
  c.op = BITNET_OP_DELTA_RULE;
  c.why = std::move(why);
  std::mt19937 random(static_cast<uint32_t>(h.d_k * 11 + h.n_v));
  const uint64_t tokens = tokens_of(all), k = 2 * h.n_k * h.d_k + h.n_v * h.d_v;
  const uint64_t part = h.d_k * h.d_v, m = h.n_v * h.d_v;
  const std::vector<float> rows = random_floats(k * tokens, 2, random);
  std::vector<float> gates(2 * h.n_v * tokens);
  for (float& g : gates) g = uniform(random, 0.05f, 1);
  const float scale = 1 / std::sqrt(static_cast<float>(h.d_k)), eps = 1e-6f;
  const uint32_t x = input_rows(c.graph, static_cast<int64_t>(k), rows);
  const uint32_t g = input_rows(c.graph, static_cast<int64_t>(2 * h.n_v), gates);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, static_cast<int64_t>(m));
  bitnet_op& o = c.graph.op(c.op, {x, g}, {y});
  const auto in_int = [](uint64_t n) { return static_cast<int32_t>(n); };
  std::ranges::copy(std::initializer_list<int32_t>{in_int(first), in_int(h.n_k), in_int(h.n_v),
                                                   in_int(h.d_k), in_int(h.d_v), h.order},
                    o.ints);
  o.floats[0] = scale;
  o.floats[1] = eps;
  output_rows(c.graph, y);
  place(c, all, first + h.n_v * part + 3, 1, random);
  c.expected.resize(tokens * m);
  c.allowed.resize(tokens * m);
  uint64_t t = 0;
  for (uint64_t s = 0; s < all.size(); ++s) {
    std::vector<double>& after =
        c.expected_states.emplace_back(c.states[s].begin(), c.states[s].end());
    std::vector<double>& allowed = c.allowed_states.emplace_back(after.size(), 0.0);
    for (uint64_t head = 0; head < h.n_v; ++head) {
      const uint64_t begin = first + head * part;
      std::vector<near> state(part);
      if (all[s].position != 0)
        for (uint64_t i = 0; i < part; ++i) state[i].x = after[begin + i];
      const uint64_t of_keys =
          h.order == BITNET_DELTA_BLOCKS ? head / (h.n_v / h.n_k) : head % h.n_k;
      for (uint64_t n = t; n < t + all[s].tokens; ++n) {
        const float* row = rows.data() + n * k;
        const float* gate = gates.data() + n * 2 * h.n_v;
        const auto q = normalised(row + of_keys * h.d_k, h.d_k, static_cast<double>(eps),
                                  static_cast<double>(scale));
        const auto keys =
            normalised(row + (h.n_k + of_keys) * h.d_k, h.d_k, static_cast<double>(eps), 1);
        const uint64_t at = n * m + head * h.d_v;
        step_head(q, keys, row + 2 * h.n_k * h.d_k + head * h.d_v,
                  {static_cast<double>(gate[head]), 0},
                  {static_cast<double>(gate[h.n_v + head]), 0}, h.d_v, state,
                  c.expected.data() + at, c.allowed.data() + at);
      }
      for (uint64_t i = 0; i < part; ++i) {
        after[begin + i] = state[i].x;
        allowed[begin + i] = 2 * state[i].off + 1e-30;
      }
    }
    t += all[s].tokens;
  }
  return c;
}

constexpr int32_t in_blocks = BITNET_DELTA_BLOCKS, in_turns = BITNET_DELTA_TURNS;

}  // namespace

op_cases columns_cases() {
  op_cases out;
  for (const parts& p : {parts{33, 33, 0, 1, 0, 1, 0, 3, "all of a row"},
                         parts{33, 1, 32, 1, 0, 1, 0, 2, "the last column"},
                         parts{640, 130, 7, 1, 0, 1, 0, 16, "a part"},
                         parts{96, 8, 0, 1, 0, 6, 16, 3, "the first half of each head"},
                         parts{96, 8, 8, 6, 16, 1, 0, 3, "the second half of each head"},
                         parts{96, 16, 0, 3, 32, 2, 16, 5, "heads in another order"},
                         parts{24, 4, 2, 3, 0, 2, 5, 2, "the same part several times"}})
    out.push_back(columns_case(p));
  return out;
}

op_cases short_conv_cases() {
  op_cases out;
  for (const uint64_t n : {2, 3, 4, 7}) {
    const std::string of = ", " + std::to_string(n) + " rows";
    out.push_back(conv_case(33, n, 0, {{0, 9}}, "from the beginning" + of));
    out.push_back(conv_case(33, n, 7, {{5, 1}}, "one token more" + of));
    out.push_back(conv_case(130, n, 2, {{3, 2}, {0, 1}, {9, 5}, {0, 4}}, "four sequences" + of));
  }
  return out;
}

op_cases delta_gates_cases() {
  op_cases out;
  out.push_back(gates_case(1, 1, 3, "one head"));
  out.push_back(gates_case(6, 5, 8, "six heads"));
  out.push_back(gates_case(48, 3, 30, "gates that are all but closed or open"));
  return out;
}

op_cases delta_rule_cases() {
  op_cases out;
  out.push_back(delta_case({1, 1, 2, 2, in_blocks}, 0, {{0, 3}}, "one head of two"));
  for (const int32_t order : {in_blocks, in_turns}) {
    const std::string of = order == in_blocks ? ", heads in blocks" : ", heads in turns";
    out.push_back(delta_case({2, 6, 16, 8, order}, 5, {{0, 6}}, "from the beginning" + of));
    out.push_back(delta_case({2, 4, 32, 33, order}, 0, {{7, 1}}, "one token more" + of));
    out.push_back(delta_case({3, 6, 8, 20, order}, 9, {{2, 3}, {0, 1}, {5, 1}, {0, 4}},
                             "four sequences" + of));
  }
  return out;
}

size_cases columns_sizes() {
  size_cases out;
  for (const parts& p : {parts{12288, 256, 256, 24, 512, 1, 0, 65, "24_gates_of_256_65_tokens"},
                         parts{6144, 128, 0, 3, 2048, 16, 128, 3, "48_heads_of_128"},
                         parts{33, 11, 0, 3, 11, 1, 0, 513, "513_tokens"}})
    out.push_back({BITNET_OP_COLUMNS, BITNET_FORMAT_NONE, p.why, [p] { return columns_case(p); }});
  return out;
}

size_cases short_conv_sizes() {
  const struct {
    const char* name;
    uint64_t k, n;
    stretches all;
  } rows[] = {{"10240_columns", 10240, 4, {{3, 2}}},
              {"513_tokens", 130, 4, {{0, 300}, {4, 213}}},
              {"64_sequences", 33, 3, stretches(64, stretch{2, 1})}};
  size_cases out;
  for (const auto& row : rows)
    out.push_back({BITNET_OP_SHORT_CONV, BITNET_FORMAT_F32, row.name,
                   [row] { return conv_case(row.k, row.n, 3, row.all, row.name); }});
  return out;
}

size_cases delta_gates_sizes() {
  size_cases out;
  out.push_back({BITNET_OP_DELTA_GATES, BITNET_FORMAT_F32, "48_heads_513_tokens",
                 [] { return gates_case(48, 513, 4, "48_heads_513_tokens"); }});
  return out;
}

size_cases delta_rule_sizes() {
  const struct {
    const char* name;
    heads h;
    stretches all;
  } rows[] = {{"48x128x128", {16, 48, 128, 128, in_turns}, {{9, 2}}},
              {"2x256x256", {2, 2, 256, 256, in_blocks}, {{1, 2}}},
              {"513_tokens", {1, 2, 8, 16, in_blocks}, {{0, 500}, {6, 13}}},
              {"64_sequences", {1, 2, 8, 8, in_turns}, stretches(64, stretch{3, 1})}};
  size_cases out;
  for (const auto& row : rows)
    out.push_back({BITNET_OP_DELTA_RULE, BITNET_FORMAT_NONE, row.name,
                   [row] { return delta_case(row.h, 3, row.all, row.name); }});
  return out;
}

}  // namespace bitnet::conformance
