// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Recognises the bodies of composites, so that a fused kernel runs only where it computes the same.
//
// A fused kernel trusts nothing that the composite claims: the ops and wiring of the body are
// compared here with the definition in ops.h. A composite that differs runs as its body.

#include <algorithm>
#include <optional>
#include <span>

#include "bitnet/sdk/interpreter/kernel.hpp"

namespace bitnet::sdk {

class composite_reader {
 public:
  explicit composite_reader(std::span<const bitnet_op> body) noexcept : body_(body) {}

  std::optional<roles> read(uint32_t op) noexcept {
    switch (op) {
      case BITNET_OP_BIT_LINEAR:
        return done(quant(free_input) && linear(parts_.linear));
      case BITNET_OP_QKV_ROPE_KV:
        return done(qkv_rope_kv());
      case BITNET_OP_ATTN_OUT:
        return done(attn_out());
      case BITNET_OP_FFN_RELU2_GATED:
        return done(ffn(BITNET_OP_RELU2));
      case BITNET_OP_FFN_SILU_GATED:
        return done(ffn(BITNET_OP_SILU));
      case BITNET_OP_LM_HEAD:
        return done(lm_head());
      default:
        return std::nullopt;
    }
  }

 private:
  static constexpr uint32_t free_input = BITNET_NONE;  // a value from before the body

  bool qkv_rope_kv() noexcept {
    if (!(norm(parts_.norm, free_input) && quant(value(parts_.norm)))) return false;
    if (!(linear(parts_.q) && linear(parts_.k) && linear(parts_.v))) return false;
    return next(BITNET_OP_ROPE, parts_.rope_q, value(parts_.q)) &&
           next(BITNET_OP_ROPE, parts_.rope_k, value(parts_.k)) &&
           next(BITNET_OP_KV_WRITE, parts_.kv_write, value(parts_.rope_k)) &&
           body_[parts_.kv_write].inputs[1] == value(parts_.v);
  }

  bool attn_out() noexcept {
    if (!next(BITNET_OP_ATTN_PAGED, parts_.attention, free_input)) return false;
    uint32_t x = value(parts_.attention);
    if (norm(parts_.norm, x)) x = value(parts_.norm);
    return quant(x) && linear(parts_.linear) && residual();
  }

  bool ffn(uint32_t activation) noexcept {
    if (!(norm(parts_.norm, free_input) && quant(value(parts_.norm)))) return false;
    if (!(linear(parts_.gate) && linear(parts_.up))) return false;
    if (!next(activation, parts_.activation, value(parts_.gate))) return false;
    if (!either(BITNET_OP_MUL, parts_.mul, value(parts_.activation), value(parts_.up)))
      return false;
    uint32_t x = value(parts_.mul);
    if (norm(parts_.sub_norm, x)) x = value(parts_.sub_norm);
    if (!next(BITNET_OP_ACT_QUANT_I8, parts_.sub_quant, x)) return false;
    return linear(parts_.linear, parts_.sub_quant) && residual();
  }

  bool lm_head() noexcept {
    return next(BITNET_OP_GATHER_ROWS, parts_.gather, free_input) &&
           norm(parts_.norm, value(parts_.gather)) &&
           next(BITNET_OP_LINEAR_DENSE, parts_.linear, value(parts_.norm));
  }

  bool norm(uint8_t& part, uint32_t x) noexcept { return next(BITNET_OP_RMS_NORM, part, x); }
  bool quant(uint32_t x) noexcept { return next(BITNET_OP_ACT_QUANT_I8, parts_.quant, x); }
  bool linear(uint8_t& part) noexcept { return linear(part, parts_.quant); }
  bool linear(uint8_t& part, uint8_t quantised) noexcept {
    return next(BITNET_OP_LINEAR_TERNARY, part, value(quantised)) &&
           body_[part].inputs[1] == body_[quantised].outputs[1];
  }
  bool residual() noexcept {
    const uint32_t y = value(parts_.linear);
    if (at_ == body_.size()) return false;
    const bitnet_op& op = body_[at_];
    const uint32_t other = op.inputs[0] == y ? op.inputs[1] : op.inputs[0];
    return !made_here(other) && either(BITNET_OP_ADD, parts_.add, y, other);
  }

  // True if the next op of the body is `op` and reads x first.
  bool next(uint32_t op, uint8_t& part, uint32_t x) noexcept {
    if (at_ == body_.size() || body_[at_].op != op) return false;
    const uint32_t read = body_[at_].inputs[0];
    if (x == free_input ? made_here(read) : read != x) return false;
    part = static_cast<uint8_t>(at_++);
    return true;
  }
  bool either(uint32_t op, uint8_t& part, uint32_t a, uint32_t b) noexcept {
    if (at_ == body_.size() || body_[at_].op != op) return false;
    const uint32_t* in = body_[at_].inputs;
    if (!((in[0] == a && in[1] == b) || (in[0] == b && in[1] == a))) return false;
    part = static_cast<uint8_t>(at_++);
    return true;
  }
  bool made_here(uint32_t v) const noexcept {
    return std::any_of(body_.begin(), body_.end(), [v](const bitnet_op& op) {
      return op.outputs[0] == v || op.outputs[1] == v;
    });
  }
  uint32_t value(uint8_t part) const noexcept { return body_[part].outputs[0]; }
  std::optional<roles> done(bool fits) const noexcept {
    return fits && at_ == body_.size() ? std::optional(parts_) : std::nullopt;
  }

  std::span<const bitnet_op> body_;
  uint64_t at_ = 0;
  roles parts_;
};

}  // namespace bitnet::sdk
