#include "reference/evaluate.hpp"

#include <map>
#include <span>
#include <stdexcept>

#include "model/formats.hpp"
#include "reference/act_quant.hpp"
#include "reference/arithmetic.hpp"
#include "reference/attention.hpp"

namespace bitnet::conformance {
namespace {

using token_rows = std::vector<std::vector<float>>;  // one for each token
using kept_rows = std::vector<std::vector<double>>;  // keys or values of each token, as kept

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
      case BITNET_OP_MUL:
        return each(op, [&](uint64_t t, uint64_t i) {
          return static_cast<float>(element_result(op.op, in(op, 0)[t][i], in(op, 1)[t][i]));
        });
      case BITNET_OP_RELU2:
      case BITNET_OP_SILU:
      case BITNET_OP_GELU:
      case BITNET_OP_SCALE:
        return each(op, [&](uint64_t t, uint64_t i) {
          return static_cast<float>(element_result(op.op, in(op, 0)[t][i], op.floats[0]));
        });
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
    for (const std::vector<float>& row : in(op, 0))
      factor.push_back(norm_factor(row, op.floats[0]));
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
    for (uint64_t t = 0; t < in(op, 0).size(); ++t) {
      const std::vector<float>& codes = in(op, 0)[t];
      quantised x{{}, in(op, 1)[t][0]};
      for (const float code : codes) x.q.push_back(static_cast<int8_t>(code));
      for (uint64_t r = 0; r < m; ++r)
        out(op)[t][r] = ternary_result(m_.tensors[op.weights[0]], r, x);
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
    each(op, [&](uint64_t t, uint64_t at) {
      const std::vector<float>& x = in(op, 0)[t];
      const uint64_t i = at % head_dim, head = at - i;
      if (i >= dims) return x[at];
      const rope_pair pair = rope_pair_of(i, dims, op.ints[3]);
      double angle = rope_angle(static_cast<double>(t) * static_cast<double>(op.floats[1]),
                                static_cast<double>(op.floats[0]), pair.number, dims);
      if (op.weights[0] != BITNET_NONE) angle /= weight(op.weights[0], 0, pair.number);
      return static_cast<float>(
          turned(x[head + pair.first], x[head + pair.second], i == pair.first, angle));
    });
  }
  static kept_rows halves(const token_rows& x) {
    kept_rows out;
    for (const std::vector<float>& row : x) {
      std::vector<double>& to = out.emplace_back();
      for (const float v : row) to.push_back(static_cast<double>(half_to_float(float_to_half(v))));
    }
    return out;
  }
  bool sees(const bitnet_op& op, uint64_t t, uint64_t p) const {
    if (window_ != 0 && p + window_ <= t && p >= keep_) return false;
    return op.ints[4] == 0 || p + static_cast<uint64_t>(op.ints[4]) > t;
  }
  void attend(const bitnet_op& op) {
    const kept_rows &k = keys_.at(op.ints[0]), &v = kept_.at(op.ints[0]);
    const auto head_dim = static_cast<uint64_t>(op.ints[3]);
    const auto group = static_cast<uint64_t>(op.ints[1] / op.ints[2]);
    out(op).assign(in(op, 0).size(), {});
    for (uint64_t t = 0; t < in(op, 0).size(); ++t)
      for (uint64_t head = 0; head < static_cast<uint64_t>(op.ints[1]); ++head) {
        std::vector<const double*> seen_keys, seen_values;
        for (uint64_t p = 0; p <= t; ++p) {
          if (!sees(op, t, p)) continue;
          seen_keys.push_back(&k[p][head / group * head_dim]);
          seen_values.push_back(&v[p][head / group * head_dim]);
        }
        std::vector<double> result, allowed;
        attend_head(std::span(in(op, 0)[t]).subspan(head * head_dim, head_dim), seen_keys,
                    seen_values, static_cast<double>(op.floats[0]), result, allowed);
        for (const double y : result) out(op)[t].push_back(static_cast<float>(y));
      }
  }

  const model& m_;
  const std::vector<int32_t>& tokens_;
  uint64_t window_, keep_;
  std::vector<token_rows> values_;
  std::map<int32_t, kept_rows> keys_, kept_;  // of each layer
};

}  // namespace

std::vector<float> evaluate(const model& m, const std::vector<int32_t>& tokens, uint32_t window,
                            uint32_t window_keep) {
  return pass(m, tokens, window, window_keep).run();
}

}  // namespace bitnet::conformance
