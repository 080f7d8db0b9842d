#include "reference/run_case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/guarded_memory.hpp"
#include "model/runner.hpp"

namespace bitnet::conformance {
namespace {

// Distance from the smallest f32 in whole steps, so that differences count steps.
int64_t step_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto size = static_cast<int64_t>(bits & 0x7fffffffu);
  return (bits & 0x80000000u) != 0 ? -size : size;
}

void compare(const char* what, uint64_t at, double expected, double allowed, float found,
             comparison& out) {
  const auto rounded = static_cast<float>(expected);
  ++out.n;
  bool right = false;
  if (std::isnan(expected)) {
    right = std::isnan(found);
  } else {
    const bool bits = std::bit_cast<uint32_t>(found) == std::bit_cast<uint32_t>(rounded);
    out.exact &= bits;
    const double error = std::fabs(static_cast<double>(found) - expected);
    right = bits || (allowed > 0 && error <= allowed);
    out.max_ulp = std::max(out.max_ulp, ulps_between(found, rounded));
    if (std::isfinite(error)) {
      out.max_abs = std::max(out.max_abs, error);
      out.error_squares += error * error;
      out.squares += expected * expected;
    }
  }
  if (right) return;
  out.exact = false;
  if (out.n_wrong++ != 0) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s %llu is %.9g, expected %.9g%s", what,
                static_cast<unsigned long long>(at), static_cast<double>(found), expected,
                allowed > 0 ? "" : " exactly");
  out.wrong = text;
  if (allowed > 0) {
    std::snprintf(text, sizeof text, " within %.3g", allowed);
    out.wrong += text;
  }
}

runner_options options_of(const op_case& c, uint32_t flags) {
  runner_options o;
  o.max_tokens = static_cast<uint32_t>(c.tokens.size());
  o.max_outputs = static_cast<uint32_t>(std::max(c.tokens.size(), c.outputs.size()));
  o.max_sequences =
      c.sequences.empty() ? 1 : static_cast<uint32_t>(std::ranges::max(c.sequences)) + 1;
  o.max_blocks = c.max_blocks;
  o.block_tokens = c.block_tokens;
  o.n_blocks = c.max_blocks + 3;
  o.dtype_k = c.dtype_k;
  o.dtype_v = c.dtype_v;
  o.window = c.window;
  o.window_keep = c.window_keep;
  o.flags = flags;
  o.precisions = c.precisions;
  return o;
}

std::span<const uint8_t> bytes_of(const std::vector<float>& x) {
  return {reinterpret_cast<const uint8_t*>(x.data()), x.size() * sizeof(float)};
}

void import_states(runner& r, const op_case& c) {
  for (uint32_t s = 0; s < c.states.size(); ++s) {
    const uint32_t id = r.state_block(s);
    const outcome o = r.import_blocks({&id, 1}, bytes_of(c.states[s]));
    if (o.status != BITNET_OK) throw call_failed(o);
  }
}

void compare_states(runner& r, const op_case& c, comparison& out) {
  for (uint32_t s = 0; s < c.expected_states.size(); ++s) {
    guarded_memory<float> found(c.expected_states[s].size());
    const uint32_t id = r.state_block(s);
    const outcome o = r.export_blocks(
        {&id, 1}, {reinterpret_cast<uint8_t*>(found.data()), found.size() * sizeof(float)});
    if (o.status != BITNET_OK) throw call_failed(o);
    const std::string what = "of the state of sequence " + std::to_string(s) + " element";
    for (uint64_t i = 0; i < found.size(); ++i)
      compare(what.c_str(), i, c.expected_states[s][i], c.allowed_states[s][i], found[i], out);
  }
}

void run_step(runner& r, const op_case& c, const runner_options& o, comparison& out,
              std::vector<float>* numbers) {
  // Blocks lie in the pool in another order than in the sequence.
  for (uint32_t b = 0; b < o.max_blocks; ++b)
    r.block_tables[b] = static_cast<int32_t>(o.n_blocks - 1 - b);
  const auto block = [&](uint64_t b) { return static_cast<uint32_t>(r.block_tables[b]); };
  for (uint64_t b = 0; b < c.blocks.size(); ++b) {
    guarded_memory<uint8_t> data{std::span<const uint8_t>(c.blocks[b])};
    const uint32_t id = block(b);
    const outcome o_import = r.import_blocks({&id, 1}, {data.data(), data.size()});
    if (o_import.status != BITNET_OK) throw call_failed(o_import);
  }
  import_states(r, c);
  std::vector<token_in> in;
  for (uint64_t t = 0; t < c.tokens.size(); ++t)
    in.push_back({c.tokens[t], c.sequences.empty() ? 0 : c.sequences[t]});
  bitnet_step step = r.prepare(in);
  for (uint64_t t = 0; t < c.tokens.size(); ++t) {
    const int32_t at = c.positions.empty() ? static_cast<int32_t>(t) : c.positions[t];
    const auto tokens = static_cast<int32_t>(c.block_tokens);
    r.positions[t] = at;
    // Cases of several sequences have states and no keys.
    r.slots[t] = c.sequences.empty() ? r.block_tables[at / tokens] * tokens + at % tokens
                                     : static_cast<int32_t>(t);
  }
  if (!c.outputs.empty()) {
    step.n_outputs = static_cast<uint32_t>(c.outputs.size());
    std::ranges::copy(c.outputs, r.output_rows);
  }
  std::fill_n(r.logits, c.expected.size(), std::numeric_limits<float>::quiet_NaN());
  const outcome o_step = r.submit(step);
  if (o_step.status != BITNET_OK) throw call_failed(o_step);
  if (numbers != nullptr) numbers->assign(r.logits, r.logits + c.expected.size());
  for (uint64_t i = 0; i < c.expected.size(); ++i)
    compare("number", i, c.expected[i], c.allowed[i], r.logits[i], out);
  compare_states(r, c, out);
  for (uint64_t b = 0; b < c.expected_blocks.size(); ++b) {
    guarded_memory<uint8_t> found(c.expected_blocks[b].size());
    const uint32_t id = block(b);
    const outcome o_export = r.export_blocks({&id, 1}, {found.data(), found.size()});
    if (o_export.status != BITNET_OK) throw call_failed(o_export);
    for (uint64_t i = 0; i < found.size(); ++i) {
      ++out.n;
      if (found[i] == c.expected_blocks[b][i]) continue;
      out.exact = false;
      if (out.n_wrong++ == 0)
        out.wrong = "byte " + std::to_string(i) + " of exported block " + std::to_string(b) +
                    " is " + std::to_string(found[i]) + ", expected " +
                    std::to_string(c.expected_blocks[b][i]);
    }
  }
  out.stats = r.stats();
}

}  // namespace

uint64_t ulps_between(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<uint64_t>::max();
  const int64_t apart = step_of(a) - step_of(b);
  return static_cast<uint64_t>(apart < 0 ? -apart : apart);
}

comparison run_case(const bitnet_backend_v0& table, bitnet_device* device, const op_case& c,
                    uint32_t flags, std::vector<float>* numbers) {
  comparison out;
  try {
    runner_options o = options_of(c, flags);
    o.opened = device;
    runner r(table, c.graph, o);
    run_step(r, c, o, out, numbers);
  } catch (const call_failed& e) {
    out.status = e.status;
    if (e.status == BITNET_UNSUPPORTED)
      out.rejected = e.what();
    else
      out.wrong = e.what();
  }
  return out;
}

}  // namespace bitnet::conformance
