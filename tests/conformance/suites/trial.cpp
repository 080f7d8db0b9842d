#include "suites/trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "reference/names.hpp"

namespace bitnet::conformance {

double nmse(double error_squares, double squares) {
  return error_squares == 0 ? 0 : squares == 0 ? HUGE_VAL : error_squares / squares;
}

double nmse(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double error = 0, size = 0;
  for (uint64_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    error += d * d;
    size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::isfinite(error) ? nmse(error, size) : HUGE_VAL;
}

std::vector<uint32_t> body_of(uint32_t composite) {
  switch (composite) {
    case BITNET_OP_BIT_LINEAR:
      return {BITNET_OP_ACT_QUANT_I8, BITNET_OP_LINEAR_TERNARY};
    case BITNET_OP_QKV_ROPE_KV:
      return {BITNET_OP_RMS_NORM, BITNET_OP_ACT_QUANT_I8, BITNET_OP_LINEAR_TERNARY, BITNET_OP_ROPE,
              BITNET_OP_KV_WRITE};
    case BITNET_OP_ATTN_OUT:
      return {BITNET_OP_ATTN_PAGED, BITNET_OP_ACT_QUANT_I8, BITNET_OP_LINEAR_TERNARY,
              BITNET_OP_ADD};
    case BITNET_OP_FFN_RELU2_GATED:
    case BITNET_OP_FFN_SILU_GATED:
      return {BITNET_OP_RMS_NORM,
              BITNET_OP_ACT_QUANT_I8,
              BITNET_OP_LINEAR_TERNARY,
              composite == BITNET_OP_FFN_RELU2_GATED ? BITNET_OP_RELU2 : BITNET_OP_SILU,
              BITNET_OP_MUL,
              BITNET_OP_ADD};
    case BITNET_OP_LM_HEAD:
      return {BITNET_OP_GATHER_ROWS, BITNET_OP_RMS_NORM, BITNET_OP_LINEAR_DENSE};
    default:
      return {};
  }
}

std::string broken_claim(const std::vector<bitnet_kernel_info>& listed,
                         const std::vector<bitnet_kernel_stat>& ran, uint32_t op, uint32_t level) {
  const bitnet_kernel_info* best = nullptr;
  for (const bitnet_kernel_stat& s : ran) {
    const auto same = [&](const bitnet_kernel_info& k) {
      return k.op == s.op && std::strncmp(k.id, s.id, sizeof k.id) == 0;
    };
    const auto k = std::ranges::find_if(listed, same);
    if (k == listed.end())
      return "kernel " + std::string(s.id, strnlen(s.id, sizeof s.id)) + " of " + op_name(s.op) +
             " ran and is not listed";
    const std::vector<uint32_t> body = body_of(s.op);
    const bool runs_op = s.op == op || std::ranges::find(body, op) != body.end();
    if (runs_op && s.calls != 0 && (best == nullptr || k->level > best->level)) best = &*k;
  }
  if (level <= BITNET_LEVEL_REFERENCE) return "";
  if (best == nullptr)
    return op_name(op) + " is claimed to be " + level_name(level) +
           ", and program_stats counts no kernel for it";
  if (best->level < level)
    return op_name(op) + " is claimed to be " + level_name(level) + ", and what ran is " +
           std::string(best->id, strnlen(best->id, sizeof best->id)) + " (" +
           level_name(best->level) + ")";
  return "";
}

std::vector<float> largest_of(runner& r, const std::vector<token_in>& in, uint32_t top) {
  bitnet_step step = r.prepare(in);
  step.top_logits = top;
  const outcome o = r.submit(step);
  if (o.status != BITNET_OK) throw call_failed(o);
  return {r.logits, r.logits + r.vocabulary()};
}

std::string wrong_largest(const std::vector<float>& whole, const std::vector<float>& found,
                          uint32_t top) {
  std::vector<float> sorted = whole;
  std::ranges::sort(sorted, std::greater());
  const float least = top == 0 ? -HUGE_VALF : sorted[std::min<uint64_t>(top, sorted.size()) - 1];
  for (uint64_t i = 0; i < whole.size(); ++i) {
    const bool left_out = std::isinf(found[i]) && found[i] < 0;
    if (found[i] == whole[i] || (left_out && whole[i] < least)) continue;
    return "logit " + std::to_string(i) + " is " + std::to_string(found[i]) + ", of all it is " +
           std::to_string(whole[i]);
  }
  return "";
}

std::string wrong_list(const bitnet_largest& list, uint32_t top, std::vector<float>& row) {
  if (const char* wrong = bitnet_wrong_largest(&list, top, row.size()); wrong != nullptr)
    return std::string("it ") + wrong;
  std::vector<bool> seen(row.size());
  std::ranges::fill(row, -HUGE_VALF);
  for (uint32_t i = 0; i < list.count; ++i) {
    const auto id = static_cast<uint64_t>(list.ids[i]);
    if (seen[id]) return "it lists token " + std::to_string(id) + " twice";
    seen[id] = true;
    row[id] = list.logits[i];
  }
  return "";
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string missing_ops(const opened_device& device, const model& m) {
  std::string out;
  const std::vector<uint32_t> levels = device.levels(m);
  for (std::size_t i = 0; i < m.ops.size(); ++i) {
    const bitnet_op& op = m.ops[i];
    if (op.op >= BITNET_OP_FIRST_COMPOSITE || levels[i] != BITNET_LEVEL_NONE) continue;
    const uint32_t format =
        op.weights[0] == BITNET_NONE ? BITNET_FORMAT_NONE : m.tensors[op.weights[0]].desc.format;
    const std::string name = kernel_name(op.op, format);
    if (out.find(name) == std::string::npos) out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

}  // namespace bitnet::conformance
