#pragma once
// How tests of plans say which devices there are, what goes in and what is expected.

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "described_device.hpp"
#include "model/formats.hpp"

namespace bitnet::parity {

using gpu::kernel_id;
using lines = std::vector<std::string>;

// As the cuda backend describes its devices: groups of four warps.
inline gpu::facts like_cuda() {
  gpu::facts f;
  f.name = "described";
  f.device_class = BITNET_DEVICE_GPU;
  f.capabilities.max_allocation_bytes = f.capabilities.max_binding_bytes = uint64_t{16} << 30;
  f.capabilities.binding_alignment = 16;
  f.capabilities.max_group_size = f.capabilities.group_size = 128;
  f.capabilities.shared_memory_bytes = 49152 - 64;
  f.capabilities.max_bindings = 8;
  f.capabilities.max_kept = 11;
  f.capabilities.attention_rows = 16;
  f.capabilities.attention_of_token = true;
  f.capabilities.has_top_head = true;
  f.capabilities.fuses_groups = true;
  f.quirks.quantises_by_words = true;
  f.capabilities.precisions = 1u << BITNET_PRECISION_F16 | 1u << BITNET_PRECISION_BF16;
  f.capabilities.rounded_heads = 7;
  return f;
}
// As a small Vulkan device: groups of 64, offsets of 256 bytes, attention without tiles.
inline gpu::facts like_vulkan() {
  gpu::facts f;
  f.name = "described";
  f.device_class = BITNET_DEVICE_GPU;
  f.capabilities.max_allocation_bytes = uint64_t{1} << 30;
  f.capabilities.max_binding_bytes = uint64_t{128} << 20;
  f.capabilities.binding_alignment = 256;
  f.capabilities.max_group_size = 1024;
  f.capabilities.group_size = 64;
  f.capabilities.shared_memory_bytes = 32768;
  f.capabilities.max_bindings = 8;
  return f;
}

struct known_kernel {
  const char* name;
  std::set<uint64_t> written;  // bindings
};
inline const known_kernel& known(kernel_id id) {
  static const std::map<kernel_id, known_kernel> all = {
      {kernel_id::embed_gather, {"embed_gather", {4}}},
      {kernel_id::rms_norm, {"rms_norm", {3}}},
      {kernel_id::act_quant, {"act_quant", {2, 3}}},
      {kernel_id::act_quant_groups, {"act_quant_groups", {2, 3}}},
      {kernel_id::hadamard, {"hadamard", {3}}},
      {kernel_id::short_conv, {"short_conv", {6, 7}}},
      {kernel_id::delta_rule, {"delta_rule", {6, 7}}},
      {kernel_id::linear_ternary, {"linear_ternary", {6}}},
      {kernel_id::linear_dense, {"linear_dense", {3}}},
      {kernel_id::rope, {"rope", {3}}},
      {kernel_id::kv_write, {"kv_write", {5, 6}}},
      {kernel_id::attn_paged, {"attn_paged", {7}}},
      {kernel_id::elementwise, {"elementwise", {3}}},
      {kernel_id::gather_rows, {"gather_rows", {3}}},
      {kernel_id::norm_quant, {"norm_quant", {3, 4}}},
      {kernel_id::norm_quant_groups, {"norm_quant_groups", {3, 4}}},
      {kernel_id::glu_quant, {"glu_quant", {4, 5, 6}}},
      {kernel_id::glu_quant_groups, {"glu_quant_groups", {3, 4}}},
      {kernel_id::bit_linear, {"bit_linear", {6}}},
      {kernel_id::attn_tiles, {"attn_tiles", {7}}},
      {kernel_id::attn_merge, {"attn_merge", {3}}},
      {kernel_id::attn_token, {"attn_token", {11, 12, 13, 14, 15}}},
      {kernel_id::head_copy, {"head_copy", {2, 3}}},
      {kernel_id::head_state, {"head_state", {2, 3}}},
      {kernel_id::head_approximate, {"head_approximate", {4, 5}}},
      {kernel_id::head_count, {"head_count", {2}}},
      {kernel_id::head_exact, {"head_exact", {5}}},
      {kernel_id::round_rows, {"round_rows", {2}}},
      {kernel_id::linear_dense_rounded, {"linear_dense_rounded", {3}}},
      {kernel_id::attn_rounded, {"attn_rounded", {7}}},
  };
  return all.at(id);
}

// Each command as "name x*y [constants]".
inline lines lines_of(const written_commands& commands) {
  lines out;
  for (const written_command& c : commands) {
    std::string line = known(c.spec.id).name;
    line += " " + std::to_string(c.groups_x) + "*" + std::to_string(c.groups_y) + " [";
    uint64_t last = std::size(c.spec.constants);
    while (last > 1 && c.spec.constants[last - 1] == 0) --last;  // those that a kernel has not
    for (uint64_t i = 0; i < last; ++i)
      line += (i == 0 ? "" : " ") + std::to_string(c.spec.constants[i]);
    out.push_back(line + "]");
  }
  return out;
}
// Their names alone.
inline lines names_of(const written_commands& commands) {
  lines out;
  for (const written_command& c : commands) out.emplace_back(known(c.spec.id).name);
  return out;
}

// Commands that do not wait for each other, and where one writes what another one touches.
inline void check_order(const written_commands& commands) {
  uint64_t first = 0;  // since the last one that waited
  for (uint64_t i = 0; i < commands.size(); ++i) {
    ASSERT_EQ(commands[i].bindings.size(), gpu::bindings_of(commands[i].spec.id));
    if (commands[i].after) first = i;
    for (uint64_t j = first; j < i; ++j) {
      const written_command &one = commands[j], &other = commands[i];
      for (uint64_t a = 0; a < one.bindings.size(); ++a)
        for (uint64_t b = 0; b < other.bindings.size(); ++b) {
          const bool changes =
              known(one.spec.id).written.contains(a) || known(other.spec.id).written.contains(b);
          EXPECT_FALSE(changes && one.bindings[a].meets(other.bindings[b]))
              << "binding " << a << " of command " << j << ", " << b << " of " << i;
        }
    }
  }
}
// The step, of which that holds.
inline written_commands step_of(described& d, uint32_t n_tokens, uint32_t outputs = 1,
                                uint32_t top = 0) {
  written_commands out = d.step(n_tokens, outputs, top);
  check_order(out);
  return out;
}

inline uint32_t in(model& m, int64_t width) {
  const uint32_t v = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, width);
  m.more_ports.push_back({BITNET_PORT_VALUE_IN, v});
  return v;
}
inline uint32_t inner(model& m, int64_t width, uint32_t dtype = BITNET_DTYPE_F32,
                      int64_t rows = BITNET_DIM_TOKENS) {
  return m.value(dtype, rows, width);
}
inline void out(model& m, uint32_t value) {
  m.more_ports.push_back({BITNET_PORT_VALUE_OUT, value});
}
// Its elements are never read.
inline uint32_t weight(model& m, uint32_t format, int64_t k, int64_t rows, uint64_t group = 0) {
  const auto wide = static_cast<uint64_t>(k), n = static_cast<uint64_t>(rows);
  if (format == BITNET_FORMAT_TERNARY2)
    return m.tensor(format, k, rows, std::vector<uint8_t>((wide + 127) / 128 * 32 * n, 0x55),
                    std::vector<float>(group == 0 ? 1 : wide / group * n, 1.0f), group);
  return m.tensor(format, k, rows,
                  std::vector<uint8_t>(conformance::row_bytes(format, wide) * n, 0));
}
inline model bare() {
  model m;
  m.logits = BITNET_NONE;
  return m;
}
inline runner_options of(uint32_t max_tokens) {
  runner_options o;
  o.max_tokens = max_tokens;
  o.max_outputs = max_tokens;
  o.max_sequences = 1;
  o.max_blocks = std::max(o.max_blocks, (max_tokens + o.block_tokens - 1) / o.block_tokens);
  return o;
}

}  // namespace bitnet::parity
