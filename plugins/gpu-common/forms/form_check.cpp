#include "form_check.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "bitnet/sdk/formats.hpp"
#include "gpu-common/simt/plain_launch.hpp"

namespace bitnet::gpu {
namespace {

using kernels::group_threads;

// Words that differ from their neighbours, as far as the mask lets them.
std::vector<uint32_t> words_of(uint64_t count, uint32_t mask) {
  std::vector<uint32_t> out(count);
  uint32_t state = 1;
  for (uint32_t& word : out) {
    state = state * 1664525u + 1013904223u;
    word = (state ^ state >> 16) & mask;
  }
  return out;
}
// Ternary codes: 0, 1 and 2.
std::vector<uint32_t> codes_of(uint64_t count) {
  std::vector<uint32_t> out = words_of(count, ~0u);
  for (uint32_t& word : out) word ^= word & word >> 1 & 0x55555555u;  // 3 becomes 2
  return out;
}
uint32_t bits_of(float x) {
  return std::bit_cast<uint32_t>(x);
}
float float_of(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
// Numbers from 1/8 to 2 in eighths, with either sign: factors of a sum of integers, which is exact.
std::vector<uint32_t> eighths_of(uint64_t count) {
  std::vector<uint32_t> out = words_of(count, 31);
  for (uint32_t& word : out)
    word = bits_of((static_cast<float>(word % 16) + 1) * (word < 16 ? 0.125f : -0.125f));
  return out;
}
// Numbers from 1/8 to 2 with all bits of f32, and either sign: their products are rounded, so that
// a sum in another order, or with other roundings, has other bits.
std::vector<uint32_t> floats_of(uint64_t count) {
  std::vector<uint32_t> out = words_of(count, ~0u);
  for (uint32_t& word : out) word = (word & 0x807fffffu) | (124 + (word >> 23 & 3u)) << 23;
  return out;
}

// A number of BITNET_FORMAT_F16 or _BF16.
float value_of(uint32_t format, uint32_t bits) {
  const auto half = static_cast<uint16_t>(bits);
  return format == BITNET_FORMAT_F16 ? sdk::f16_to_f32(half) : sdk::bf16_to_f32(half);
}
// Rounds to nearest even; x is no NaN.
uint32_t rounded_to(uint32_t format, float x) {
  if (format == BITNET_FORMAT_F16) return sdk::f32_to_f16(x);
  const uint32_t bits = bits_of(x), below = bits & 0xffffu, upper = bits >> 16;
  return upper + (below > 0x8000u || (below == 0x8000u && upper % 2 == 1) ? 1 : 0);
}
// Numbers from 1 to 2, and either sign, two to a word: with all bits of the format, or only the
// uppermost, which are 1 and 1.5.
std::vector<uint32_t> halves_of(uint32_t format, uint64_t count, bool all_bits = true) {
  const bool f16 = format == BITNET_FORMAT_F16;
  const uint32_t upper = f16 ? 0x82008200u : 0x80408040u, all = f16 ? 0x83ff83ffu : 0x807f807fu;
  std::vector<uint32_t> out = words_of((count + 1) / 2, all_bits ? all : upper);
  for (uint32_t& word : out) word |= f16 ? 0x3c003c00u : 0x3f803f80u;
  return out;
}
// The two numbers of each word.
std::vector<float> values_of(uint32_t format, const std::vector<uint32_t>& words) {
  std::vector<float> out;
  out.reserve(2 * words.size());
  for (const uint32_t word : words)
    for (const uint32_t half : {word & 0xffffu, word >> 16}) out.push_back(value_of(format, half));
  return out;
}

}  // namespace

trial product_trial(uint32_t k, uint32_t rows, uint32_t tokens, uint32_t own, uint32_t given) {
  const bool factors = own != 0 || given != 0;
  const auto words = static_cast<uint32_t>(row_words(BITNET_FORMAT_TERNARY2, k));
  const uint64_t of_given = uint64_t{tokens} * (given == 0 ? 1 : k / given),
                 of_own = own == 0 ? 1 : uint64_t{rows} * (k / own);
  trial out;
  // Groups of so many threads, which add up by 32, for four tokens and four rows.
  out.spec = {kernel_id::linear_ternary,
              {group_threads, factors ? 1u : 32u, std::min(tokens, 4u), 4, given}};
  out.memory = {{tokens, 0, 0, 0},
                words_of(tokens * i8_row_words(k), ~0u),
                factors ? floats_of(of_given) : eighths_of(of_given),
                codes_of(uint64_t{rows} * words),
                factors ? floats_of(of_own) : eighths_of(of_own),
                {0},  // nothing is added
                std::vector<uint32_t>(uint64_t{rows} * tokens)};
  out.set(linear_ternary_params{0, k, rows, words, 0, rows, own, 0});
  out.groups_x = factors ? (rows + 3) / 4 : (rows + 15) / 16;
  out.groups_y = (tokens + 3) / 4;
  return out;
}

trial bit_linear_trial(uint32_t k, uint32_t rows) {
  const auto words = static_cast<uint32_t>(row_words(BITNET_FORMAT_TERNARY2, k));
  trial out;
  out.spec = {kernel_id::bit_linear,
              {group_threads, 32, 1, 4, static_cast<uint32_t>(i8_row_words(k))}};
  out.memory = {{1, 0, 0, 0},
                floats_of(k),
                floats_of(k),
                codes_of(uint64_t{rows} * words),
                eighths_of(1),
                {0},  // nothing is added
                std::vector<uint32_t>(rows)};
  out.set(bit_linear_params{0, k, rows, words, 0, rows, 0, 1e-5f});
  out.groups_x = (rows + 15) / 16;
  return out;
}

trial rounded_trial(uint32_t format, uint32_t k, uint32_t rows, uint32_t tokens) {
  const auto stride = static_cast<uint32_t>(rounded_row_words(k)), words = k / 2;
  trial out;
  out.spec = {kernel_id::linear_dense_rounded, {group_threads, 32, 4, format, 0}};
  // Products are less than 3 and multiples of 2^-11, and sums of a few hundred fit into 24 bits.
  std::vector<uint32_t> x = halves_of(format, uint64_t{2} * tokens * stride);
  for (uint32_t t = 0; t < tokens; ++t)
    x[t * stride + stride - 4] = bits_of(std::ldexp(1.0f, static_cast<int>(t % 7) - 3));
  std::vector<uint32_t> matrix = halves_of(format, uint64_t{rows} * k, false);
  const std::vector<float> of_x = values_of(format, x), of_matrix = values_of(format, matrix);
  out.wanted.reserve(uint64_t{tokens} * rows);
  for (uint32_t t = 0; t < tokens; ++t)
    for (uint32_t r = 0; r < rows; ++r) {
      const float *a = &of_matrix[uint64_t{r} * k], *b = &of_x[uint64_t{t} * 2 * stride];
      float sum = 0;
      for (uint32_t i = 0; i < k; ++i) sum += a[i] * b[i];
      out.wanted.push_back(bits_of(sum * float_of(x[t * stride + stride - 4])));
    }
  out.memory = {{tokens, 0, 0, 0},
                std::move(x),
                std::move(matrix),
                std::vector<uint32_t>(uint64_t{rows} * tokens)};
  out.set(linear_dense_rounded_params{0, k, rows, words, 0, rows});
  out.groups_x = (rows + 3) / 4;
  out.groups_y = (tokens + 3) / 4;
  return out;
}

namespace {

// The power of two that round_rows multiplies a row by, as kernels.hpp has it.
int power_for(uint32_t format, float largest) {
  if (format == BITNET_FORMAT_BF16) return largest >= std::ldexp(1.0f, 127) ? -1 : 0;
  return std::min(14 - std::ilogb(largest), 126);
}

}  // namespace

trial round_rows_trial(uint32_t format, uint32_t k) {
  const auto stride = static_cast<uint32_t>(rounded_row_words(k));
  constexpr int powers[] = {0, -120, 127, 3};
  constexpr uint32_t rows = 4;
  std::vector<uint32_t> x = floats_of(uint64_t{rows} * k);
  // Ties of f16 and of bf16, and numbers that f16 has fewer bits for.
  for (uint64_t i = 0; i < x.size(); ++i) {
    const uint32_t kept = i % 4 == 0 ? 0xfffff000u : i % 4 == 1 ? 0xffff8000u : ~0u;
    const int more = i % 4 == 2 ? -26 : 0;
    x[i] = bits_of(std::ldexp(float_of(x[i] & kept), powers[i / k] + more));
  }
  x.back() = 0xff800000u;
  trial out;
  out.spec = {kernel_id::round_rows, {group_threads, 32, 4, format, 0}};
  out.wanted.resize(uint64_t{rows} * stride);
  for (uint32_t r = 0; r < rows; ++r) {
    float largest = 0;
    for (uint32_t i = 0; i < k; ++i)
      if (const float size = std::fabs(float_of(x[r * k + i])); std::isfinite(size))
        largest = std::max(largest, size);
    const int power = power_for(format, largest);
    uint32_t* to = &out.wanted[r * stride];
    for (uint32_t i = 0; i < k; ++i)
      to[i / 2] |= rounded_to(format, std::ldexp(float_of(x[r * k + i]), power)) << i % 2 * 16;
    to[stride - 4] = bits_of(std::ldexp(1.0f, -power));
  }
  out.memory = {{rows, 0, 0, 0}, std::move(x), std::vector<uint32_t>(out.wanted.size())};
  out.set(round_rows_params{0, k});
  out.groups_y = rows;
  return out;
}

trial row_trial(kernel_id id, uint32_t k, uint32_t rows, uint32_t group) {
  const uint64_t values = uint64_t{rows} * k;
  const bool gated = id == kernel_id::glu_quant, of_head = id == kernel_id::head_state;
  trial out;
  out.spec = {id, {group_threads, gated ? uint32_t{BITNET_OP_SILU} : 0, gated ? 1u : 0u, 0, 0}};
  out.memory = {{rows, 0, 0, 0}, floats_of(values)};
  out.memory.back()[values - 1] = 0x7f800000u;
  if (gated) out.memory.push_back(floats_of(values));
  if (id != kernel_id::act_quant && !of_head) out.memory.push_back(floats_of(k));
  if (gated) out.memory.emplace_back(values);  // scratch
  if (of_head) {
    out.memory.emplace_back(rows * head_state_words(k));
    out.memory.push_back(words_of(rows * head_count_words, ~0u));  // become zeros
  } else if (id == kernel_id::rms_norm) {
    out.memory.emplace_back(values);
  } else {
    out.memory.emplace_back(rows * i8_row_words(k));
    out.memory.emplace_back(group == 0 ? rows : uint64_t{rows} * (k / group));
  }
  out.written = id == kernel_id::rms_norm ? 1 : 2;
  // Kernels without `eps` or `heads` do not read them; norm_quant_groups has `group` in the place
  // of heads.
  out.set(rms_norm_params{0, k, 1e-5f, group == 0 ? 1 : group});
  return out;
}

trial delta_trial(uint32_t rows) {
  constexpr uint32_t tokens = 5, heads = 2, columns = 40;
  const uint32_t state_words = heads * rows * columns;
  std::vector<uint32_t> gates = floats_of(uint64_t{tokens} * 2 * heads);
  for (uint32_t& one : gates) one &= 0x7fffffffu;
  trial out;
  out.spec = {kernel_id::delta_rule, {group_threads, rows, 0, 0, 0}};
  out.memory = {{tokens, 0, 0, 0},
                floats_of(uint64_t{tokens} * (2 * rows + heads * columns)),
                std::move(gates),
                {7, 8, 9, 0, 1},
                {0, 0, 0, 1, 1},
                {1, 0},
                floats_of(uint64_t{2} * state_words),
                std::vector<uint32_t>(uint64_t{tokens} * heads * columns)};
  out.written = 2;
  out.set(delta_rule_params{0, 0, state_words, 1, heads, columns, 0, 1, 0.25f, 1e-6f, 0, tokens});
  out.groups_x = heads;
  out.groups_y = 2;
  return out;
}

trial attention_trial(uint32_t head_dim, uint32_t tile_rows) {
  constexpr uint32_t heads = 4, block_tokens = 16, max_blocks = 5, ends[] = {19, 21, 22};
  constexpr uint32_t tokens = ends[2], sequences = 3, first_position = 56;
  const uint64_t rows = uint64_t{sequences} * max_blocks * block_tokens;
  std::vector<uint32_t> positions, of, table;
  for (uint32_t t = 0; t < tokens; ++t) {
    positions.push_back(first_position + t);
    of.push_back(t < ends[0] ? 0 : t < ends[1] ? 1 : 2);
  }
  for (uint32_t i = 0; i < sequences * max_blocks; ++i)
    table.push_back(sequences * max_blocks - 1 - i);
  const auto numbers = [&] {
    return halves_of(BITNET_FORMAT_F16, 2 * rows * kv_row_words(BITNET_DTYPE_F16, head_dim));
  };
  trial out;
  out.spec = {kernel_id::attn_tiles,
              {group_threads, BITNET_DTYPE_F16, BITNET_DTYPE_F16, tile_rows, head_dim}};
  out.memory = {{tokens, 0, 0, 0},
                floats_of(uint64_t{tokens} * heads * head_dim),
                std::move(positions),
                std::move(of),
                std::move(table),
                numbers(),
                numbers(),
                std::vector<uint32_t>(uint64_t{tokens} * heads * head_dim)};
  out.set(attn_tiles_params{0, heads, 1, head_dim, block_tokens, max_blocks, 0.0625f, 0, 0});
  out.groups_y = tokens;
  return out;
}

trial rounded_attention_trial(uint32_t head_dim, uint32_t tile_rows) {
  trial out = attention_trial(head_dim, tile_rows);
  out.spec.id = kernel_id::attn_rounded;
  // Queries are 64 and keys 1, either sign: scores are multiples of 128.
  for (uint32_t& word : out.memory[1]) word = 0x42800000u | (word & 0x80000000u);
  for (uint32_t& word : out.memory[5]) word = 0x3c003c00u | (word & 0x80008000u);
  attn_rounded_params p{};
  std::memcpy(&p, out.params.data(), sizeof p);
  p.scale = 1;
  out.set(p);
  return out;
}

namespace {

class bench {
 public:
  bench(device_with_forms& on, const sdk::reporter& report) : on_(on), report_(report) {}

  // By the kernel that there is without the forms of `off`, which may run for so long.
  bitnet_status compute(const trial& of, const forms& off, uint64_t patience_ns,
                        std::vector<uint32_t>& out) {
    std::unique_ptr<kernel> made;
    if (bitnet_status s = on_.make_kernel_without(off, true, of.spec, made, report_);
        sdk::failed(s))
      return s;
    std::vector<std::unique_ptr<buffer>> memory;
    command one;
    one.run = made.get();
    one.params = of.params;
    one.groups_x = of.groups_x;
    one.groups_y = of.groups_y;
    for (const std::vector<uint32_t>& words : of.memory) {
      auto& to = memory.emplace_back();
      const uint64_t bytes = 4 * words.size();
      if (bitnet_status s = on_.allocate(bytes, memory_place::device, to, report_); sdk::failed(s))
        return s;
      if (bitnet_status s = on_.upload(*to, 0, words.data(), bytes, report_); sdk::failed(s))
        return s;
      one.bindings.push_back({to.get(), 0, bytes});
    }
    if (bitnet_status s = run(one, patience_ns); sdk::failed(s)) {
      if (!on_.hangs()) return s;
      for (std::unique_ptr<buffer>& used : memory) static_cast<void>(used.release());
      static_cast<void>(made.release());
      return s;
    }
    out.clear();
    for (uint64_t i = memory.size() - of.written; i < memory.size(); ++i) {
      const uint64_t begin = out.size(), bytes = memory[i]->size();
      out.resize(begin + bytes / 4);
      if (bitnet_status s = on_.download(*memory[i], 0, out.data() + begin, bytes, report_);
          sdk::failed(s))
        return s;
    }
    return BITNET_OK;
  }

 private:
  bitnet_status run(const command& one, uint64_t patience_ns) {
    std::unique_ptr<recording> recorded;
    std::unique_ptr<queue> order;
    if (bitnet_status s = on_.record({&one, 1}, false, recorded, report_); sdk::failed(s)) return s;
    if (bitnet_status s = on_.make_queue(order, report_); sdk::failed(s)) return s;
    if (bitnet_status s = order->submit(*recorded, 1, report_); sdk::failed(s)) return s;
    const bitnet_status s = order->wait(1, patience_ns, report_);
    if (s != BITNET_TIMEOUT) return s;
    on_.hang();
    static_cast<void>(recorded.release());
    static_cast<void>(order.release());
    return s;
  }

  device_with_forms& on_;
  const sdk::reporter& report_;
};

}  // namespace

bitnet_status check_forms(device_with_forms& on, std::span<const form_trial> trials,
                          const forms& all, std::vector<form_fault>& found,
                          const sdk::reporter& report) {
  bench computing(on, report);
  forms known = on.off();
  for (const form_trial& one : trials) {
    std::vector<uint32_t> wanted = one.of.wanted, y;
    const char* const judged = wanted.empty()
                                   ? "has other bits than the kernel that it stands in for"
                                   : "has other bits than the host computes";
    uint64_t patience_ns = on.patience_ns();
    for (const char* form : one.forms) {
      if (has(known, form) || !has(all, form)) continue;  // this build may lack it
      if (wanted.empty()) {
        using clock = std::chrono::steady_clock;
        const clock::time_point from = clock::now();
        if (bitnet_status s = computing.compute(one.of, all, 3 * patience_ns, wanted);
            sdk::failed(s))
          return s;
        const std::chrono::nanoseconds took = clock::now() - from;
        // A form is slower on no device, but a busy one may be by then.
        patience_ns = std::max(patience_ns, 8 * static_cast<uint64_t>(took.count()));
      }
      forms others = all;
      std::erase(others, form);
      const bitnet_status s = computing.compute(one.of, others, patience_ns, y);
      if (s == BITNET_TIMEOUT || s == BITNET_DEVICE_LOST)
        found.push_back({form, s == BITNET_TIMEOUT ? "does not end" : "loses the device"});
      if (sdk::failed(s)) return s;
      if (y == wanted) continue;
      known.emplace_back(form);
      found.push_back({form, judged});
    }
  }
  return BITNET_OK;
}

}  // namespace bitnet::gpu
