#include "reference/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <stdexcept>

#include "model/formats.hpp"
#include "reference/act_quant.hpp"

namespace bitnet::conformance {
namespace {

using token_rows = std::vector<std::vector<float>>;  // one for each token

class pass {
 public:
  pass(const model& m, const std::vector<int32_t>& tokens, uint32_t window, uint32_t keep)
      : m_(m), tokens_(tokens), window_(window), keep_(keep), values_(m.values.size()) {}

  std::vector<float> run() {
    for (const bitnet_op& op : m_.ops)
      if (op.op < BITNET_OP_FIRST_COMPOSITE) apply(op);
    std::vector<float> out;
    for (const std::vector<float>& row : values_[m_.logits])
      out.insert(out.end(), row.begin(), row.end());
    return out;
  }

 private:
  double weight(uint32_t index, uint64_t row, uint64_t i) const {
    const model_tensor& t = m_.tensors[index];
    const auto k = static_cast<uint64_t>(t.desc.ne[0]);
    const double v = element(t.desc.format, t.data.data() + row * row_bytes(t.desc.format, k), i);
    if (t.desc.format != BITNET_FORMAT_TERNARY2) return v;
    const uint64_t group = t.desc.scale_group;
    return v * static_cast<double>(t.scales[group == 0 ? 0 : (row * k + i) / group]);
  }
  const token_rows& in(const bitnet_op& op, int i) const { return values_[op.inputs[i]]; }
  token_rows& out(const bitnet_op& op, int i = 0) { return values_[op.outputs[i]]; }

  template <class Function>
  void each(const bitnet_op& op, Function f) {
    out(op) = in(op, 0);
    for (uint64_t t = 0; t < out(op).size(); ++t)
      for (uint64_t i = 0; i < out(op)[t].size(); ++i) out(op)[t][i] = f(t, i);
  }

  void apply(const bitnet_op& op) {
    switch (op.op) {
      case BITNET_OP_EMBED_GATHER:
        return embed(op);
      case BITNET_OP_RMS_NORM:
        return norm(op);
      case BITNET_OP_ACT_QUANT_I8:
        return quantise(op);
      case BITNET_OP_LINEAR_TERNARY:
        return ternary(op);
      case BITNET_OP_LINEAR_DENSE:
        return dense(op);
      case BITNET_OP_ROPE:
        return rope(op);
      case BITNET_OP_KV_WRITE:
        keys_[op.ints[0]] = halves(in(op, 0));
        kept_[op.ints[0]] = halves(in(op, 1));
        return;
      case BITNET_OP_ATTN_PAGED:
        return attend(op);
      case BITNET_OP_ADD:
        return each(op, [&](uint64_t t, uint64_t i) { return in(op, 0)[t][i] + in(op, 1)[t][i]; });
      case BITNET_OP_MUL:
        return each(op, [&](uint64_t t, uint64_t i) { return in(op, 0)[t][i] * in(op, 1)[t][i]; });
      case BITNET_OP_RELU2:
        return each(op, [&](uint64_t t, uint64_t i) {
          const float x = std::max(in(op, 0)[t][i], 0.0f);
          return x * x;
        });
      case BITNET_OP_SILU:
        return each(op, [&](uint64_t t, uint64_t i) {
          const auto x = static_cast<double>(in(op, 0)[t][i]);
          return static_cast<float>(x / (1 + std::exp(-x)));
        });
      case BITNET_OP_GELU:
        return each(op, [&](uint64_t t, uint64_t i) {
          const auto x = static_cast<double>(in(op, 0)[t][i]);
          const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
          return static_cast<float>(x / 2 * (1 + std::tanh(u)));
        });
      case BITNET_OP_SCALE:
        return each(op, [&](uint64_t t, uint64_t i) { return in(op, 0)[t][i] * op.floats[0]; });
      case BITNET_OP_GATHER_ROWS:  // of every token
        out(op) = in(op, 0);
        return;
      default:
        throw std::runtime_error("the reference has no op " + std::to_string(op.op));
    }
  }

  void embed(const bitnet_op& op) {
    const auto k = static_cast<uint64_t>(m_.values[op.outputs[0]].dims[1]);
    out(op).assign(tokens_.size(), std::vector<float>(k));
    for (uint64_t t = 0; t < tokens_.size(); ++t)
      for (uint64_t i = 0; i < k; ++i)
        out(op)[t][i] =
            static_cast<float>(weight(op.weights[0], static_cast<uint64_t>(tokens_[t]), i));
  }
  void norm(const bitnet_op& op) {
    std::vector<double> factor;
    for (const std::vector<float>& row : in(op, 0)) {
      double sum = 0;
      for (const float v : row) sum += static_cast<double>(v) * static_cast<double>(v);
      factor.push_back(
          1 / std::sqrt(sum / static_cast<double>(row.size()) + static_cast<double>(op.floats[0])));
    }
    each(op, [&](uint64_t t, uint64_t i) {
      return static_cast<float>(static_cast<double>(in(op, 0)[t][i]) * factor[t] *
                                weight(op.weights[0], 0, i));
    });
  }
  void quantise(const bitnet_op& op) {
    out(op, 0).clear();
    out(op, 1).clear();
    for (const std::vector<float>& row : in(op, 0)) {
      const quantised q = act_quant(row);
      out(op, 0).emplace_back(q.q.begin(), q.q.end());
      out(op, 1).push_back({q.scale});
    }
  }
  void ternary(const bitnet_op& op) {
    const auto m = static_cast<uint64_t>(m_.values[op.outputs[0]].dims[1]);
    out(op).assign(in(op, 0).size(), std::vector<float>(m));
    for (uint64_t t = 0; t < in(op, 0).size(); ++t)
      for (uint64_t r = 0; r < m; ++r) {
        double sum = 0;
        for (uint64_t i = 0; i < in(op, 0)[t].size(); ++i)
          sum += weight(op.weights[0], r, i) * static_cast<double>(in(op, 0)[t][i]);
        out(op)[t][r] = static_cast<float>(sum / static_cast<double>(in(op, 1)[t][0]));
      }
  }
  void dense(const bitnet_op& op) {
    const auto m = static_cast<uint64_t>(m_.values[op.outputs[0]].dims[1]);
    out(op).assign(in(op, 0).size(), std::vector<float>(m));
    for (uint64_t t = 0; t < in(op, 0).size(); ++t)
      for (uint64_t r = 0; r < m; ++r) {
        double sum = 0;
        for (uint64_t i = 0; i < in(op, 0)[t].size(); ++i)
          sum += weight(op.weights[0], r, i) * static_cast<double>(in(op, 0)[t][i]);
        out(op)[t][r] = static_cast<float>(sum);
      }
  }
  void rope(const bitnet_op& op) {
    const auto head_dim = static_cast<uint64_t>(op.ints[1]),
               dims = static_cast<uint64_t>(op.ints[2]);
    const bool neox = op.ints[3] == BITNET_ROPE_NEOX;
    each(op, [&](uint64_t t, uint64_t at) {
      const std::vector<float>& x = in(op, 0)[t];
      const uint64_t i = at % head_dim, head = at - i;
      if (i >= dims) return x[at];
      const uint64_t pair = neox ? i % (dims / 2) : i / 2;
      const uint64_t first = head + (neox ? pair : 2 * pair);
      const uint64_t second = neox ? first + dims / 2 : first + 1;
      double angle = static_cast<double>(t) * static_cast<double>(op.floats[1]) *
                     std::pow(static_cast<double>(op.floats[0]),
                              -2.0 * static_cast<double>(pair) / static_cast<double>(dims));
      if (op.weights[0] != BITNET_NONE) angle /= weight(op.weights[0], 0, pair);
      const auto a = static_cast<double>(x[first]), b = static_cast<double>(x[second]);
      return static_cast<float>(at == first ? a * std::cos(angle) - b * std::sin(angle)
                                            : a * std::sin(angle) + b * std::cos(angle));
    });
  }
  static token_rows halves(token_rows x) {
    for (std::vector<float>& row : x)
      for (float& v : row) v = half_to_float(float_to_half(v));
    return x;
  }
  void attend(const bitnet_op& op) {
    const token_rows &k = keys_.at(op.ints[0]), &v = kept_.at(op.ints[0]);
    const auto head_dim = static_cast<uint64_t>(op.ints[3]);
    const auto group = static_cast<uint64_t>(op.ints[1] / op.ints[2]);
    each(op, [&](uint64_t t, uint64_t at) {
      const uint64_t head = at / head_dim, i = at % head_dim, kv = head / group * head_dim;
      double largest = -HUGE_VAL, sum = 0, total = 0;
      std::vector<double> score(t + 1, -HUGE_VAL);
      for (uint64_t p = 0; p <= t; ++p) {
        if (window_ != 0 && p + window_ <= t && p >= keep_) continue;
        if (op.ints[4] != 0 && p + static_cast<uint64_t>(op.ints[4]) <= t) continue;
        double s = 0;
        for (uint64_t j = 0; j < head_dim; ++j)
          s += static_cast<double>(in(op, 0)[t][head * head_dim + j]) *
               static_cast<double>(k[p][kv + j]);
        score[p] = s * static_cast<double>(op.floats[0]);
        largest = std::max(largest, score[p]);
      }
      for (uint64_t p = 0; p <= t; ++p) {
        const double e = std::exp(score[p] - largest);
        sum += e;
        total += e * static_cast<double>(v[p][kv + i]);
      }
      return static_cast<float>(total / sum);
    });
  }

  const model& m_;
  const std::vector<int32_t>& tokens_;
  uint64_t window_, keep_;
  std::vector<token_rows> values_;
  std::map<int32_t, token_rows> keys_, kept_;  // of each layer
};

}  // namespace

std::vector<float> evaluate(const model& m, const std::vector<int32_t>& tokens, uint32_t window,
                            uint32_t window_keep) {
  return pass(m, tokens, window, window_keep).run();
}

}  // namespace bitnet::conformance
