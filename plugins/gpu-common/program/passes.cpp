// Estimates how many loop passes a thread makes in a kernel. The final test of a loop counts as a
// pass. Loops over a group's tokens and a thread's rows count, because the driver decides whether
// to unroll them.
#include <algorithm>
#include <bit>

#include "program.hpp"

namespace bitnet::gpu {
namespace {

constexpr uint64_t around = 128;  // loops whose number of passes does not depend on the model

struct counter {
  const kernel_spec& spec;
  uint64_t context;
  uint64_t threads = spec.constants[0];
  uint64_t lanes = std::max(spec.constants[1], 1u);

  // A tile has a position for each thread. The kernel's loops run over groups of eight elements of
  // a head and over the rest, over the positions of the tile, and twice over each of two trees.
  uint64_t operator()(const attn_paged_params& p) const noexcept {
    const uint64_t head_dim = p.head_dim, tree = std::bit_width(threads) + uint64_t{1};
    uint64_t of_tile = 1 + (head_dim / 8 + 1) + (head_dim % 8 + 1) + (threads + 1) + 2 * tree;
    // Loops over what a thread keeps are unrolled; tried for up to 32 elements.
    const uint64_t kept = spec.constants[3];
    if (kept > 32) of_tile += (threads + 1) * (kept + 1);
    return (context + threads - 1) / threads * of_tile + around;
  }
  // For each part of the context: loops over sixteens of a head, over the rows that a warp weighs,
  // and over values in groups of four.
  uint64_t operator()(const attn_tiles_params& p) const noexcept {
    const uint64_t parts = (context + attn_part - 1) / attn_part, rows = spec.constants[3];
    return parts * (p.head_dim / 16 + rows + attn_part / 4 * (p.head_dim / threads + 1)) + around;
  }
  uint64_t operator()(const attn_merge_params& p) const noexcept {
    const uint64_t parts = (context + attn_part - 1) / attn_part;
    return parts * (p.head_dim / threads + 2) + around;
  }
  // A group may merge what all groups of a KV head leave.
  uint64_t operator()(const attn_token_params& p) const noexcept {
    const uint64_t parts = (context + attn_part - 1) / attn_part, rows = spec.constants[3];
    return parts * (p.head_dim / 16 + rows + (attn_part / 4 + rows) * (p.head_dim / threads + 1)) +
           around;
  }
  uint64_t operator()(const linear_ternary_params& p) const noexcept {
    const uint64_t k = p.k, each = spec.constants[3];
    // For each quarter of 128 elements: a loop that sums the products, then one that adds the sums.
    if (spec.constants[4] != 0) return (k / 128 + 1) * 4 * most_tokens * (2 * each + 2) + around;
    if (p.scale_group == 0) return p.row_words / lanes * most_tokens * (each + 2) + around;
    return each * most_tokens * (k / 4 + 2 * (k / p.scale_group) + 2) + around;
  }
  uint64_t operator()(const linear_dense_params& p) const noexcept {
    return p.k / lanes * (most_tokens + 2) + around;
  }
  uint64_t operator()(const round_rows_params& p) const noexcept { return of_row(p.k); }
  uint64_t operator()(const linear_dense_rounded_params& p) const noexcept {
    return p.k / 64 * (most_tokens + 2) + around;
  }
  uint64_t operator()(const bit_linear_params& p) const noexcept {
    return 4 * (p.k / threads) + p.row_words / lanes * (uint64_t{spec.constants[3]} + 2) + around;
  }
  uint64_t operator()(const rms_norm_params& p) const noexcept { return of_row(p.k); }
  uint64_t operator()(const act_quant_params& p) const noexcept { return of_row(p.k); }
  uint64_t operator()(const norm_quant_params& p) const noexcept { return of_row(p.k); }
  uint64_t operator()(const glu_quant_params& p) const noexcept { return of_row(p.k); }
  // Loops over the runs of input and of output, and over a tree of pairs between them.
  uint64_t operator()(const hadamard_params& p) const noexcept {
    const uint64_t tile = spec.constants[1], runs = p.from == 1 ? 1 : p.to / p.from;
    return 2 * (tile / threads + 2 * runs) + std::bit_width(tile) * (tile / 2 / threads + 2) +
           around;
  }
  // A thread has one or two units of at most 128 elements.
  uint64_t operator()(const act_quant_groups_params&) const noexcept { return around; }
  uint64_t operator()(const glu_quant_groups_params&) const noexcept { return around; }
  uint64_t operator()(const norm_quant_groups_params& p) const noexcept { return of_row(p.k); }
  uint64_t operator()(const embed_gather_params&) const noexcept { return around; }
  uint64_t operator()(const rope_params&) const noexcept { return around; }
  uint64_t operator()(const kv_write_params&) const noexcept { return around; }
  uint64_t operator()(const elementwise_params&) const noexcept { return around; }
  uint64_t operator()(const gather_rows_params&) const noexcept { return around; }
  uint64_t operator()(const columns_params&) const noexcept { return around; }
  uint64_t operator()(const delta_gates_params&) const noexcept { return around; }
  // The two-stage head: loops over the elements of a row and over its bins; a team has one row.
  uint64_t operator()(const head_copy_params& p) const noexcept { return of_row(p.k); }
  uint64_t operator()(const head_state_params& p) const noexcept { return of_row(p.k); }
  uint64_t operator()(const head_approximate_params& p) const noexcept { return of_row(p.k); }
  uint64_t operator()(const head_count_params&) const noexcept { return head_bins + around; }
  uint64_t operator()(const head_exact_params& p) const noexcept {
    return head_bins + threads * (p.k / lanes) + around;
  }
  // For one token, which may be a run of its own: three tests, then loops over the kept rows.
  uint64_t operator()(const short_conv_params&) const noexcept {
    return 3 + 4 * (uint64_t{spec.constants[1]} + 1);
  }
  // For one token: three tests, two sums of squares with a tree of two loops each, the copies to
  // the group's memory, then two loops over the rows of the state in groups of eight.
  uint64_t operator()(const delta_rule_params&) const noexcept {
    const uint64_t d_k = spec.constants[1], tree = std::bit_width(threads) + uint64_t{1};
    return 8 + 3 * (d_k / threads + 1) + 4 * tree + 2 * (d_k / 8 + 1 + d_k % 8 + 1);
  }

  uint64_t of_row(uint64_t k) const noexcept { return 5 * (k / threads) + around; }
};

}  // namespace

uint64_t passes_of(const node& n, uint64_t context) {
  const uint64_t passes = std::visit(counter{n.spec, context}, n.params);
  if (!works_on_states(n.params)) return passes;
  // If columns or heads outnumber threads or groups, each takes several.
  constexpr uint64_t fewest_groups = 65535;  // of a launch; every device supports as many
  const uint64_t units = n.grid == grid::threads ? n.columns / n.spec.constants[0] : n.columns;
  return passes * (units / fewest_groups + 1) + around;
}

uint32_t tokens_at_once(const node& n, uint64_t most_passes) {
  if (most_passes == 0) return UINT32_MAX;
  const uint64_t each = passes_of(n, 0) - around;
  return static_cast<uint32_t>(std::max<uint64_t>((most_passes - around) / each, 1));
}

bitnet_status program::check_passes(const sdk::reporter& report) const {
  const uint64_t most = device_.quirks().max_passes;
  if (most == 0) return BITNET_OK;
  const uint64_t context = uint64_t{limits_.max_blocks} * limits_.block_tokens;
  for (const node& n : plan_.nodes) {
    const uint64_t passes = passes_of(n, context);
    if (passes <= most) continue;
    const uint64_t fewest = passes_of(n, 0);
    if (fewest > most)
      return report.fail(BITNET_UNSUPPORTED,
                         "%s needs loops of %llu passes, and %s ends loops after %llu; use the cpu "
                         "backend",
                         n.name.c_str(), static_cast<unsigned long long>(passes),
                         device_.about().name.c_str(), static_cast<unsigned long long>(most));
    const uint64_t fits = (most - fewest) * context / (passes - fewest);
    return report.fail(BITNET_UNSUPPORTED,
                       "a context of %llu tokens, and %s ends loops after %llu passes, which is "
                       "enough for %llu; use a shorter context (-c) or the cpu backend",
                       static_cast<unsigned long long>(context), device_.about().name.c_str(),
                       static_cast<unsigned long long>(most),
                       static_cast<unsigned long long>(fits));
  }
  return BITNET_OK;
}

}  // namespace bitnet::gpu
