#pragma once
// Makes a plan, op by op. plan.cpp has products, attention and their ops; plan_elements.cpp has
// elementwise ops, quantisation in groups and ops with states.

#include "fusion.hpp"
#include "plan.hpp"

namespace bitnet::gpu {

inline operand reads(uint32_t value) {
  return {operand::source::value, value, false};
}
inline operand writes(uint32_t value) {
  return {operand::source::value, value, true};
}

// The input of an op with two inputs that is not `value`.
inline uint32_t other_input(const bitnet_op& op, uint32_t value) {
  return op.inputs[op.inputs[0] == value ? 1 : 0];
}

class planner {
 public:
  planner(const sdk::graph& g, const weights& all, const opened& device, uint32_t precisions,
          const sdk::reporter& report, plan& out)
      : graph_(g),
        weights_(all),
        device_(device),
        precisions_(precisions & device.capabilities().precisions),
        report_(report),
        out_(out),
        tiles_(tiles_for(device.about())),
        fusions_(find_fusions(g, all, device)) {}

  bitnet_status make();

 private:
  uint64_t width(uint32_t value) const {
    return static_cast<uint64_t>(graph_.values[value].dims[1]);
  }
  uint32_t width32(uint32_t value) const { return static_cast<uint32_t>(width(value)); }
  uint32_t rows_of(uint32_t value) const {
    return graph_.values[value].dims[0] == BITNET_DIM_OUTPUTS ? rows_are_outputs : rows_are_tokens;
  }

  node start(kernel_id id, const bitnet_op& op, uint32_t shape, gpu::grid grid, uint64_t columns);
  bitnet_status push(node n);
  bitnet_status add(const bitnet_op& op, const fusion& f);
  bitnet_status embed_gather(const bitnet_op& op);
  bitnet_status act_quant(const bitnet_op& op, const fusion& f);
  bitnet_status linear_ternary(const bitnet_op& op, uint32_t residual, uint32_t result);
  bitnet_status bit_linear(const bitnet_op& op, uint64_t quant, uint32_t residual, uint32_t result);
  bitnet_status linear_dense(const bitnet_op& op);
  void round_many(const bitnet_op& op, node& plain);
  bool makes_logits(uint32_t value) const;
  void top_head(const bitnet_op& op, const node& full);
  bitnet_status rope(const bitnet_op& op, const fusion& f);
  uint32_t rotations_of(const bitnet_op& op, uint32_t pairs);
  bitnet_status kv_write(const bitnet_op& op, const fusion& f);
  bitnet_status attention(const bitnet_op& op, const fusion& f);
  bitnet_status attention_by_tiles(const bitnet_op& op, const fusion& f);
  void round_prompts(node& whole);
  node attention_of_token(const bitnet_op& op, const fusion& f, const node& cut);

  // In plan_elements.cpp:
  bitnet_status add_element_op(const bitnet_op& op, const fusion& f);
  bitnet_status act_quant_groups(const bitnet_op& op, const fusion& f);
  bitnet_status rms_norm(const bitnet_op& op, uint32_t heads, const fusion& f);
  bitnet_status hadamard(const bitnet_op& op);
  bitnet_status elementwise(const bitnet_op& op);
  bitnet_status gather_rows(const bitnet_op& op);
  bitnet_status columns(const bitnet_op& op);
  bitnet_status short_conv(const bitnet_op& op);
  bitnet_status delta_gates(const bitnet_op& op);
  bitnet_status delta_rule(const bitnet_op& op);
  bitnet_status check_whole(const node& n) const;

  const sdk::graph& graph_;
  const weights& weights_;
  const opened& device_;
  const uint32_t precisions_;
  const sdk::reporter& report_;
  plan& out_;
  const tiles tiles_;
  fusions fusions_;
};

}  // namespace bitnet::gpu
