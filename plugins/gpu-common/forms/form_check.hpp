#pragma once
// Compares the bits of each form with those of the kernel that replaces it, or with those that the
// host computes where no other kernel does: in the child of a probe, when a device is opened and
// nothing else uses its memory yet. A form with other bits is not used.
//
// A form that waits too long for a barrier gives up, and its results then differ. A form that
// exceeds its time limit, or loses the device, ends the check: it is the last of `found`, and the
// device cannot be used in this process.

#include <cstring>
#include <string>
#include <vector>

#include "forms.hpp"
#include "gpu-common/kernels.hpp"

namespace bitnet::gpu {

// A command, and the contents of its memory before it runs: the header, then the kernel's bindings.
// The last `written` bindings are the results.
struct trial {
  kernel_spec spec;
  std::vector<std::vector<uint32_t>> memory;
  std::vector<uint32_t> params;
  uint32_t written = 1, groups_x = 1, groups_y = 1;
  // What comes out, as the host computes it. Empty: the kernel without any form computes it.
  std::vector<uint32_t> wanted = {};

  template <class Params>
  void set(const Params& p) {
    params.resize(sizeof p / 4);
    std::memcpy(params.data(), &p, sizeof p);
  }
};

// A matrix of `rows` rows of `k` ternary elements times `tokens` vectors. `own` and `given`:
// elements to a factor of the matrix and of the activations; 0: one for all.
trial product_trial(uint32_t k, uint32_t rows, uint32_t tokens, uint32_t own, uint32_t given);
// bit_linear with a norm: `rows` rows of `k` ternary elements times one row.
trial bit_linear_trial(uint32_t k, uint32_t rows);
// A matrix of BITNET_FORMAT_F16 or _BF16 times vectors that are rounded to the same format. The
// hardware decides the order of the sums, so factors are such that any order is exact, and the host
// computes them.
trial rounded_trial(uint32_t format, uint32_t k, uint32_t rows, uint32_t tokens);
// round_rows to BITNET_FORMAT_F16 or _BF16, which the host computes: rows of ordinary, of small and
// of the largest numbers, with ties, and one row with an infinity.
trial round_rows_trial(uint32_t format, uint32_t k);
// rms_norm, act_quant, norm_quant, norm_quant_groups, glu_quant or head_state of `rows` rows of `k`
// numbers. The last number of the last row is an infinity. One group computes all rows. There are
// at least two, since a row with an infinity has the same codes whatever its sum is. `group`:
// elements to a factor, of norm_quant_groups.
trial row_trial(kernel_id id, uint32_t k, uint32_t rows, uint32_t group = 0);
// States of `rows` rows of two sequences, of which one begins.
trial delta_trial(uint32_t rows);
// A sequence whose tokens see parts of the context whole and in part, and two of few tokens.
trial attention_trial(uint32_t head_dim, uint32_t tile_rows);
// The same for attn_rounded, where f16 rounds nothing: scores are equal or far apart, so that
// weights are 1 or 0, and sums of a few values are exact in any order. A form then has the bits of
// attn_tiles.
trial rounded_attention_trial(uint32_t head_dim, uint32_t tile_rows);

// A trial for each of these forms, and for the kernel that computes without any of them or the
// host.
struct form_trial {
  std::vector<const char*> forms;
  trial of;
};

// The fault of a form, in words that follow its name.
struct form_fault {
  std::string form, what;
};
// Computes the trials of all forms that are not in on.off(). `all`: every form of the driver. Takes
// some 500 KB of memory for that time. Fails if a call does; BITNET_TIMEOUT or BITNET_DEVICE_LOST
// may be the last form's fault.
bitnet_status check_forms(device_with_forms& on, std::span<const form_trial> trials,
                          const forms& all, std::vector<form_fault>& found,
                          const sdk::reporter& report);

}  // namespace bitnet::gpu
