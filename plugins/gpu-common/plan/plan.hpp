#pragma once
// A graph as a list of kernels, for steps of any size. Neighbours whose intermediate value no other
// op reads become one kernel if there is one for them. Composites are planned by their bodies.

#include <functional>
#include <string>
#include <vector>

#include "bitnet/sdk/compute/graph.hpp"
#include "gpu-common/kernels.hpp"
#include "gpu-common/memory/weights.hpp"
#include "parameters.hpp"

namespace bitnet::gpu {

// The source of one binding of a kernel.
struct operand {
  enum class source : uint8_t {
    value,   // of the graph
    tokens,  // step buffers
    positions,
    sequences,
    slots,
    block_tables,
    output_rows,
    states,
    matrix,  // node::weight, part by part
    vector,  // node::vector or node::weight, rank 1
    scales,  // of node::weight
    keys,    // of layer `index`
    values,
    state,       // all of the pool
    rotations,   // table `index` of the plan
    parts,       // of the context, written by attention `index` of the plan
    tickets,     // of the groups of an attention, all zeros between kernels
    rounded,     // activations of product `index` of the plan
    head_codes,  // of node::weight
    head_norms,
    head_states,  // of the step's outputs
    head_counts,
    head_bounds,
    head_found,
    largest,  // port
  };
  source from;
  uint32_t index = 0;
  bool written = false;
};

// How a kernel's work groups are counted.
enum class grid : uint8_t {
  threads,  // node::columns threads in x, a row in y
  rows,     // node::columns groups to a row; for kernels of states in x, a sequence in y
  heads,    // node::columns groups in x, a row in y
  matrix,   // rows of the matrix in x, some tokens in y
  tiles,    // node::columns KV heads in x, times shares and parts of the context; a row in y
};

// Which steps a node is part of.
enum class steps : uint8_t {
  all,
  of_one_row,
  of_more_rows,
  in_parts,      // steps in which attention cuts the context into parts
  not_in_parts,  // all others
  of_few_rows,   // fewer than fewest_rounded
  of_many_rows,
  of_prompts  // more rows than attention cuts the context for, and keys and values of f16
};
// Which logits a step must ask for to contain the node.
enum class logits : uint8_t { any, all, largest };

struct node {
  kernel_spec spec;  // without constants that depend on the step's size or the pool
  uint32_t op = 0;   // op that statistics count
  std::string name;
  std::vector<operand> operands;  // after the step header
  // By spec.id. Members that depend on the pool, the part of the matrix or the step are 0.
  parameters params;
  gpu::grid grid{};
  uint64_t columns = 0;
  uint32_t rows = rows_are_tokens;
  gpu::steps when = steps::all;
  bool not_of_one_row = false;  // and of no step of one row
  bool not_of_prompts = false;  // and of no step that has nodes `of_prompts`
  gpu::logits of = logits::any;
  const device_weight* weight = nullptr;
  const device_weight* vector = nullptr;  // source::vector, if that is not `weight`
  uint64_t weight_bytes = 0;              // read per call; embed_gather: per token
};

// Cosines and sines that the host makes for each step.
struct rotation_table {
  float theta, factor;
  uint32_t pairs;
  const device_weight* divisors;
  std::vector<double> frequencies;  // radians for each position
};

struct plan {
  std::vector<node> nodes;
  std::vector<rotation_table> rotations;
  const device_weight* lm_head = nullptr;  // has a two-stage form
  bool lists = false;                      // the largest logits of `lm_head` can be listed
  std::vector<uint64_t> part_words;        // by attention: for a token and a part of the context
  uint32_t tickets = 0;                    // words of source::tickets
  std::vector<uint64_t> rounded_words;     // by product with rounded activations: of a row
};

// Most rows of a step for which attention cuts the context into parts. Steps with more rows have
// enough groups anyway, and the partial results of every token need memory.
inline constexpr uint32_t most_rows_in_parts = 16;
inline constexpr uint32_t most_tokens = 4;  // that a group of a linear kernel takes together
// Fewest rows of a step whose dense products are rounded, if permitted: with fewer rows each weight
// is read only once anyway.
inline constexpr uint32_t fewest_rounded = most_tokens + 1;

// Kernel constants that suit a device.
struct tiles {
  uint32_t group;      // threads of a work group
  uint32_t lanes;      // that share a row of a matrix
  uint32_t tokens;     // most tokens that a group of a linear kernel takes together
  uint32_t rows_each;  // of a ternary matrix that a thread takes
};
tiles tiles_for(const facts& about) noexcept;

// An upper estimate of the loop passes that a thread makes in the node's kernel when attention sees
// `context` tokens.
uint64_t passes_of(const node& n, uint64_t context);
// Most tokens of one command of a kernel of states if a thread makes at most most_passes passes (0:
// no limit). At least one.
uint32_t tokens_at_once(const node& n, uint64_t most_passes);

// Rows of the matrix that a group of a linear kernel takes.
uint32_t rows_of_group(const kernel_spec& spec) noexcept;

// Rows of an attention tile for `wanted` rows, limited by the group's memory; 4 or more.
uint32_t tile_rows_for(const capabilities& can, uint64_t wanted, uint64_t head_dim) noexcept;

// Groups of tiled attention for one token if the context has `parts` parts; of attn_token, if a
// step of one row has so many, at least one.
uint64_t tile_groups(const node& n, const kernel_spec& spec, uint64_t parts) noexcept;

// True if the op's kernel fits the memory of a work group. Only DELTA_RULE may not fit.
bool fits_group(const capabilities& can, const bitnet_op& op) noexcept;

// precisions: 1 << BITNET_PRECISION_* for each format to which products may be rounded.
bitnet_status make_plan(const sdk::graph& g, const weights& all, const opened& device,
                        uint32_t precisions, plan& out, const sdk::reporter& report);

}  // namespace bitnet::gpu
