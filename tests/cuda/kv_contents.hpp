#pragma once
// What tests of attention compute with: steps of sequences, and keys and values of a pool. What no
// token sees are NaNs, and a block that no token sees has no place in the pool.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "bitnet/sdk/formats.hpp"
#include "gpu-common/kernels.hpp"

namespace bitnet::cuda::test {

inline constexpr uint32_t f32 = BITNET_DTYPE_F32, f16 = BITNET_DTYPE_F16, q8 = BITNET_DTYPE_Q8_0,
                          q4 = BITNET_DTYPE_Q4_0;
inline constexpr uint32_t max_blocks = 40, n_sequences = 4;
inline constexpr uint32_t nowhere = 0x7fffffff;

struct shape {
  const char* why;
  uint32_t head_dim, heads, kv_heads, k_type, v_type;
  uint32_t window = 0, keep = 0, own_window = 0;
  uint32_t block_tokens = 16;  // positions of a block of the pool; 64 in programs

  bool sees(uint32_t from, uint32_t p) const {
    return p <= from && (window == 0 || p + uint64_t{window} > from || p < keep) &&
           (own_window == 0 || p + uint64_t{own_window} > from);
  }
};

inline shape in_blocks_of(uint32_t block_tokens, shape s) {
  s.block_tokens = block_tokens;
  return s;
}

struct token {
  uint32_t position, sequence;
};
using step = std::vector<token>;

inline step run_of(uint32_t sequence, uint32_t first, uint32_t n) {
  step out;
  for (uint32_t i = 0; i < n; ++i) out.push_back({first + i, sequence});
  return out;
}
inline step together(const std::vector<step>& parts) {
  step out;
  for (const step& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

inline std::vector<uint32_t> bits_of(const std::vector<float>& x, uint64_t first, uint64_t n) {
  std::vector<uint32_t> out(n);
  std::memcpy(out.data(), &x[first], n * sizeof(float));
  return out;
}

// A head of a token as KV pools keep it on the device, and as it is then.
inline std::vector<uint8_t> kept(uint32_t dtype, std::vector<float>& x) {
  std::vector<uint8_t> out;
  const auto put = [&](const auto& v) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&v);
    out.insert(out.end(), bytes, bytes + sizeof v);
  };
  for (uint64_t i = 0; i < x.size(); ++i) {
    if (dtype == f32) put(x[i]);
    if (dtype == f16) {
      put(sdk::f32_to_f16(x[i]));
      x[i] = sdk::f16_to_f32(sdk::f32_to_f16(x[i]));
    }
    if (dtype != q8) continue;
    const uint16_t d = sdk::f32_to_f16(1.0f / 100);
    if (i % 32 == 0) put(uint32_t{d});
    const auto code = static_cast<int8_t>(std::nearbyint(x[i] * 60));
    put(code);
    x[i] = sdk::f16_to_f32(d) * static_cast<float>(code);
  }
  if (dtype == q4) {
    const auto code_of = [&x](uint64_t i) {
      const float q = std::clamp(8 - std::nearbyint(x[i] * 4), 0.0f, 15.0f);
      x[i] = -0.25f * (q - 8);
      return static_cast<uint8_t>(q);
    };
    for (uint64_t b = 0; b < x.size(); b += 32) {
      put(uint32_t{sdk::f32_to_f16(-0.25f)});
      for (uint64_t i = b; i < b + 16; ++i)
        put(static_cast<uint8_t>(code_of(i) | code_of(i + 16) << 4));
    }
  }
  out.resize((out.size() + 3) / 4 * 4);
  return out;
}

// An element of a key, or of a value.
using number = std::function<float(std::mt19937&, bool)>;
inline float uniform(std::mt19937& random, bool) {
  return std::uniform_real_distribution<float>(-2, 2)(random);
}

// Keys and values of all sequences, scattered over a pool, of as many positions as steps see.
class pool {
 public:
  pool(const shape& s, const step& all, const number& of = uniform)
      : s_(s), table(n_sequences * max_blocks, nowhere) {
    std::mt19937 random(s.head_dim + s.heads);
    const uint64_t rows = uint64_t{n_sequences} * max_blocks * s.kv_heads * s.block_tokens;
    keys.assign(rows * row_bytes(s.k_type), 0xff);  // NaNs, also as the factor of a block
    values.assign(rows * row_bytes(s.v_type), 0xff);
    known_.resize(rows);
    for (const token& t : all)
      for (uint32_t p = 0; p <= t.position; ++p) {
        if (!s.sees(t.position, p)) continue;
        const uint32_t i = t.sequence * max_blocks + p / s.block_tokens;
        table[i] = (7 * i + 3) % (n_sequences * max_blocks);
        for (uint32_t h = 0; h < s.kv_heads; ++h) {
          both& one = known_[row_of(t.sequence, h, p)];
          if (!one.key.empty()) continue;
          for (std::vector<float>* x : {&one.key, &one.value})
            for (uint32_t d = 0; d < s.head_dim; ++d) x->push_back(of(random, x == &one.key));
          const uint64_t r = row_of(t.sequence, h, p);
          const auto key = kept(s.k_type, one.key), value = kept(s.v_type, one.value);
          std::copy(key.begin(), key.end(), &keys[r * key.size()]);
          std::copy(value.begin(), value.end(), &values[r * value.size()]);
        }
      }
  }
  struct both {
    std::vector<float> key, value;
  };
  const both& at(const token& t, uint32_t kv_head, uint32_t p) const {
    return known_[row_of(t.sequence, kv_head, p)];
  }

 private:
  uint64_t row_bytes(uint32_t dtype) const { return 4 * gpu::kv_row_words(dtype, s_.head_dim); }
  uint64_t row_of(uint32_t sequence, uint32_t kv_head, uint32_t p) const {
    const uint64_t block = table[sequence * max_blocks + p / s_.block_tokens];
    return (block * s_.kv_heads + kv_head) * s_.block_tokens + p % s_.block_tokens;
  }

  const shape s_;
  std::vector<both> known_;  // by row

 public:
  std::vector<uint32_t> table;
  std::vector<uint8_t> keys, values;
};

// A prompt that goes on over the end of a part, then sequences that are elsewhere.
inline step mixed() {
  return together({run_of(0, 118, 22), run_of(1, 577, 1), run_of(2, 62, 3), run_of(3, 0, 1)});
}

}  // namespace bitnet::cuda::test
