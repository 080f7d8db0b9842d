#pragma once
// Decides which ops of a graph one kernel computes together: neighbours whose intermediate value no
// other op reads, where such a kernel exists and is not disabled.

#include <vector>

#include "bitnet/sdk/compute/graph.hpp"
#include "plan.hpp"

namespace bitnet::gpu {

inline constexpr uint64_t no_op = UINT64_MAX;

// How one op is fused. Numbers are indices of other ops, or no_op.
struct fusion {
  bool absorbed = false;  // a later op's kernel computes it
  uint64_t norm = no_op;  // ACT_QUANT_I8 and ACT_QUANT_I8_GROUPED: the RMS_NORM before it
  uint64_t mul = no_op;   // and the MUL before that; of groups, without a norm
  uint64_t activation = no_op;
  uint64_t linear = no_op;  // ADD: the ternary product before it
  uint64_t rope = no_op;    // KV_WRITE: the ROPE of its keys
  // ATTN_PAGED: in steps of one row it computes the KV_WRITE before it and the ROPE of its queries.
  uint64_t kv_write = no_op, rope_of_q = no_op;
  // And the RMS_NORM_HEADS before the ROPE of both, queries and keys.
  uint64_t norm_of_q = no_op, norm_of_k = no_op;
  bool in_attention = false;  // those ops: no step of one row has a command of theirs
  bool repeated = false;      // ACT_QUANT_I8: in steps of one row, each reader quantises by itself
  bool counted = false;       // and a reader's weight_bytes already include the norm's
};

struct fusions {
  std::vector<fusion> of;        // each op
  std::vector<uint64_t> writer;  // of each value: the primitive that writes it, or no_op
};

fusions find_fusions(const sdk::graph& g, const weights& all, const opened& device);

}  // namespace bitnet::gpu
