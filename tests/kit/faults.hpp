#pragma once
// Faults of size: an op computes rightly up to N of something, and what lies beyond is wrong.
// Included by saboteur.cpp, whose backend it changes.
//
//   rows       output rows of the weight from N on; of an embedding, tokens with such ids
//   columns    elements of the input from N on are read as 0; of an embedding, they are written so
//   tokens     rows of the step from N on; of GATHER_ROWS, what is taken from such rows
//   outputs    output rows of GATHER_ROWS from N on
//   positions  tokens at positions from N on; attention sees no key beyond
//   heads      heads from N on
//   head_dim   elements of a head from N on
//   layers     layers from N on
//   formats    weights whose BITNET_FORMAT_* is N or more
//   sequences  sequences from N on have the blocks, or the state, of sequence 0

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bitnet/sdk/interpreter.hpp"

namespace {

enum class dimension : uint8_t {
  rows,
  columns,
  tokens,
  outputs,
  positions,
  heads,
  head_dim,
  layers,
  formats,
  sequences
};

struct fault {
  uint32_t op = BITNET_OP_NONE;  // none is planted
  dimension of = dimension::rows;
  uint64_t n = 0;
  bitnet::sdk::primitive_kernel sound = nullptr;

  bool read(const std::string& text);
};
fault planted;

bool fault::read(const std::string& text) {
  const auto first = text.find(':'), second = text.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return false;
  *this = {};
  const auto same = [](std::string_view upper, std::string_view lower) {
    return std::equal(upper.begin(), upper.end(), lower.begin(), lower.end(),
                      [](char u, char l) { return (u >= 'A' && u <= 'Z' ? u + 32 : u) == l; });
  };
  const std::string name = text.substr(0, first), what = text.substr(first + 1, second - first - 1);
#define BITNET_ROW(NAME, ID, ...) \
  if (same(#NAME, name)) op = ID;
  BITNET_OP_LIST(BITNET_ROW)
#undef BITNET_ROW
  constexpr std::array<std::string_view, 10> names = {
      "rows",  "columns",  "tokens", "outputs", "positions",
      "heads", "head_dim", "layers", "formats", "sequences"};
  const auto found = std::find(names.begin(), names.end(), what);
  if (op == BITNET_OP_NONE || found == names.end()) return false;
  of = static_cast<dimension>(found - names.begin());
  n = std::strtoull(text.c_str() + second + 1, nullptr, 10);
  return true;
}

uint64_t head_dim_of(const call& c) {
  if (c.op == BITNET_OP_ATTN_PAGED) return static_cast<uint64_t>(c.ints[3]);
  if (c.op == BITNET_OP_RMS_NORM_HEADS) return c.w->k;
  if (c.op == BITNET_OP_ROPE) return static_cast<uint64_t>(c.ints[1]);
  if (c.op == BITNET_OP_DELTA_RULE) return static_cast<uint64_t>(c.ints[4]);
  return c.op == BITNET_OP_KV_WRITE ? c.step->kv.head_dim : 1;
}

// Whether element i of row t of what the call writes lies beyond the fault's N.
bool beyond(const call& c, uint64_t t, uint64_t i) {
  const bool gathers = c.op == BITNET_OP_GATHER_ROWS;
  switch (planted.of) {
    case dimension::rows:
      return (c.op == BITNET_OP_EMBED_GATHER ? static_cast<uint64_t>(c.step->tokens[t]) : i) >=
             planted.n;
    case dimension::columns:  // of an embedding, which has no input
      return c.op == BITNET_OP_EMBED_GATHER && i >= planted.n;
    case dimension::tokens:
      return (gathers ? static_cast<uint64_t>(c.step->output_rows[t]) : t) >= planted.n;
    case dimension::outputs:
      return t >= planted.n;
    case dimension::positions:
      return c.op != BITNET_OP_ATTN_PAGED &&
             static_cast<uint64_t>(c.step->positions[t]) >= planted.n;
    case dimension::heads:
      return i / head_dim_of(c) >= planted.n;
    case dimension::head_dim:
      return i % head_dim_of(c) >= planted.n;
    case dimension::layers:
      return static_cast<uint64_t>(c.ints[0]) >= planted.n;
    case dimension::formats:
      return c.w && c.w->format >= planted.n;
    case dimension::sequences:
      return false;
  }
  return false;
}

float spoilt(float x) {
  return x * 1.5f + 1.0f;
}

// What the op writes, from (t, i) on in the share's part.
void spoil(const call& c, const share& s) {
  // Units are columns of all tokens, or heads of them.
  const bool product = bitnet::sdk::is_product(c.op) || c.op == BITNET_OP_SHORT_CONV;
  const bool rule = c.op == BITNET_OP_DELTA_RULE;
  const bool attends = c.op == BITNET_OP_ATTN_PAGED;
  const uint64_t width = c.m, kv_heads = attends ? static_cast<uint64_t>(c.ints[2]) : 1;
  const auto row = [&](uint64_t t, uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      if (!beyond(c, t, i)) continue;
      if (c.op == BITNET_OP_ACT_QUANT_I8 || c.op == BITNET_OP_ACT_QUANT_I8_GROUPED) {
        int8_t& q = c.output<int8_t>(0)[t * width + i];
        q = static_cast<int8_t>(q > 0 ? q - 1 : q + 1);
      } else {
        float& y = c.output<float>(0)[t * width + i];
        y = planted.of == dimension::columns ? 0 : spoilt(y);
      }
    }
  };
  if (product) {
    for (uint64_t t = 0; t < c.rows; ++t) row(t, s.first, s.last);
  } else if (rule) {
    const uint64_t part = head_dim_of(c);
    for (uint64_t t = 0; t < c.rows; ++t) row(t, s.first * part, s.last * part);
  } else {
    for (uint64_t unit = s.first; unit < s.last; ++unit) {
      const uint64_t part = width / kv_heads, head = unit % kv_heads;
      row(unit / kv_heads, head * part, (head + 1) * part);
    }
  }
}

// In place of the op's kernel.
void faulty(const call& c, const share& s) noexcept {
  call changed = c;
  std::vector<float> inputs[2];
  std::vector<int8_t> codes;
  std::vector<int32_t> numbers;
  bitnet::sdk::step_view step = *c.step;
  const bool stores = c.op == BITNET_OP_KV_WRITE;
  if (planted.of == dimension::columns || stores) {
    const auto change = [&](auto* x, uint64_t t, uint64_t i) {
      if (planted.of == dimension::columns ? i >= planted.n : beyond(c, t, i))
        *x = planted.of == dimension::columns ? 0 : static_cast<float>(*x) * 1.5f + 1.0f;
    };
    const uint64_t rows = c.op == BITNET_OP_GATHER_ROWS ? c.step->n_tokens : c.rows;
    const auto copy = [&](int at, auto& to, const auto* from) {
      to.assign(from, from + rows * c.k);
      for (uint64_t t = 0; t < rows; ++t)
        for (uint64_t i = 0; i < c.k; ++i) change(&to[t * c.k + i], t, i);
      changed.in[at] = to.data();
    };
    const bool two = stores || c.op == BITNET_OP_ADD || c.op == BITNET_OP_MUL;
    if (c.op == BITNET_OP_LINEAR_TERNARY || c.op == BITNET_OP_LINEAR_TERNARY_GROUPED)
      copy(0, codes, c.input<int8_t>(0));
    else if (c.op != BITNET_OP_EMBED_GATHER)
      for (int at = 0; at < (two ? 2 : 1); ++at) copy(at, inputs[at], c.input<float>(at));
  }
  if (c.op == BITNET_OP_ATTN_PAGED &&
      (planted.of == dimension::positions || planted.of == dimension::sequences)) {
    const bool far = planted.of == dimension::positions;
    const int32_t* from = far ? step.positions : step.sequences;
    numbers.assign(from, from + step.n_tokens);
    for (int32_t& x : numbers)
      if (static_cast<uint64_t>(x) >= planted.n) x = far ? static_cast<int32_t>(planted.n) - 1 : 0;
    (far ? step.positions : step.sequences) = numbers.data();
    changed.step = &step;
  }
  if (planted.of == dimension::sequences && step.states != nullptr &&
      c.op != BITNET_OP_ATTN_PAGED) {
    int32_t last = 0;
    for (uint32_t t = 0; t < step.n_tokens; ++t) last = std::max(last, step.sequences[t]);
    numbers.assign(step.states, step.states + last + 1);
    for (uint64_t i = planted.n; i < numbers.size(); ++i) numbers[i] = numbers[0];
    step.states = numbers.data();
    changed.step = &step;
  }
  planted.sound(changed, s);
  if (!stores) spoil(c, s);
}

void describe_with_fault(const bitnet_open_request& request, bitnet::sdk::definition& d) {
  describe(request, d);
  for (bitnet::sdk::primitive& p : d.primitives)
    if (p.op == planted.op) {
      planted.sound = p.run;
      p.run = faulty;
    }
}

}  // namespace
