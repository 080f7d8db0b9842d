// rows.hpp for a machine with vectors: the shared text of the forms. Kernels only, no shared inline
// functions; multiply and add are not fused.
//
// Expects  BITNET_ISA, the suffix of the names; BITNET_LANES, floats in a vector register;
//          BITNET_CONVERSIONS, the file with from_bytes(), to_bytes(), from_halves() and
//          to_halves().
// Gives    all that BITNET_ROWS lists, with that suffix.
// Used by  rows_*.cpp.
#include <cstring>

#include "rows.hpp"

// BITNET_ROW(softmax) is softmax_avx2 where BITNET_ISA is avx2. The helper expands BITNET_ISA
// before ## joins the words.
#define BITNET_JOIN_(a, b) a##_##b
#define BITNET_JOIN(a, b) BITNET_JOIN_(a, b)
#define BITNET_ROW(name) BITNET_JOIN(name, BITNET_ISA)

namespace bitnet::cpu {
namespace {

constexpr uint64_t lanes = BITNET_LANES, vectors = 16 / lanes;
using floats = float __attribute__((vector_size(4 * lanes)));
using words = uint32_t __attribute__((vector_size(4 * lanes)));
using integers = int32_t __attribute__((vector_size(4 * lanes)));
using bytes = int8_t __attribute__((vector_size(lanes)));
using octets = uint8_t __attribute__((vector_size(lanes)));
using narrow = float __attribute__((vector_size(2 * lanes)));
using halves = uint16_t __attribute__((vector_size(2 * lanes)));
using doubles = double __attribute__((vector_size(4 * lanes)));

#include BITNET_CONVERSIONS

inline floats load(const float* x) {
  floats v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
inline void store(floats v, float* y) {
  std::memcpy(y, &v, sizeof v);
}

template <class T>
T total(T (&p)[16]) {
  for (int half = 8; half != 0; half /= 2)
    for (int j = 0; j < half; ++j) p[j] += p[j + half];
  return p[0];
}

inline floats power_of_two(words e) {
  return reinterpret_cast<floats>((e + 127) << 23);
}

inline octets load_octets(const uint8_t* x) {
  octets v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
inline float widened_half(const uint8_t* x) {
  uint16_t h;
  std::memcpy(&h, x, sizeof h);
  return from_halves(halves{} + h)[0];
}
// Converts codes below 128.
inline floats widened(octets codes) {
  return from_bytes(reinterpret_cast<bytes>(codes));
}

// (x + shift) - shift is x rounded, half to even, for |x| < exact_below: a float from 2^23 to 2^24
// has no bits below 1.
constexpr float shift = 12582912.0f;       // 1.5 * 2^23, its bits are 0x4b400000
constexpr float exact_below = 4194304.0f;  // 2^22

// The same steps as exponential() in rows_scalar.cpp.
inline floats exponential(floats x) {
  const floats low = floats{} - 80.0f, high = floats{} + 89.0f;
  const auto none = x < low;
  x = none ? low : x;
  x = x > high ? high : x;
  const floats t = x * 1.44269504f + shift;
  const floats n = t - shift;
  const floats r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  floats p = floats{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * (r * r) + r) + 1.0f;
  const words e = reinterpret_cast<words>(t) - 0x4b400000u;
  const words first = reinterpret_cast<words>(reinterpret_cast<integers>(e) >> 1);
  const floats y = (p * power_of_two(first)) * power_of_two(e - first);
  return none ? floats{} : y;
}

// Up to 16 floats, followed by `fill`.
struct block {
  float x[16];
  block(const float* from, uint64_t n, float fill) {
    for (float& v : x) v = fill;
    std::memcpy(x, from, n * sizeof(float));
  }
};

inline integers quantised(floats x, float scale) {
  const floats v = x * scale;
  const floats size = reinterpret_cast<floats>(reinterpret_cast<words>(v) & 0x7fffffffu);
  floats r = size < exact_below ? (v + shift) - shift : v;
  r = r > -128.0f ? r : floats{} - 128.0f;
  r = r < 127.0f ? r : floats{} + 127.0f;
  return __builtin_convertvector(r, integers);
}

}  // namespace

void BITNET_ROW(rms_norm)(const float* x, const float* w, float eps, uint64_t k, float* y) {
  constexpr uint64_t width = lanes / 2, parts = 16 / width;
  doubles sums[parts] = {};
  const uint64_t whole = k / 16 * 16;
  for (uint64_t i = 0; i < whole; i += 16)
    for (uint64_t j = 0; j < parts; ++j) {
      narrow v;
      std::memcpy(&v, x + i + j * width, sizeof v);
      const doubles d = __builtin_convertvector(v, doubles);
      sums[j] += d * d;
    }
  double p[16];
  std::memcpy(p, sums, sizeof p);
  for (uint64_t i = whole; i < k; ++i)
    p[i - whole] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const auto mean = static_cast<float>(total(p) / static_cast<double>(k));
  const float factor = 1.0f / __builtin_sqrtf(mean + eps);
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] * factor * w[i];
}

void BITNET_ROW(act_quant)(const float* x, uint64_t k, int8_t* q, float* s) {
  floats largest[vectors] = {};
  const uint64_t whole = k / 16 * 16;
  for (uint64_t i = 0; i < whole; i += 16)
    for (uint64_t j = 0; j < vectors; ++j) {
      const floats v = load(x + i + j * lanes);
      const floats size = reinterpret_cast<floats>(reinterpret_cast<words>(v) & 0x7fffffffu);
      largest[j] = size > largest[j] ? size : largest[j];
    }
  float p[16], most = 1e-5f;
  std::memcpy(p, largest, sizeof p);
  for (const float v : p) most = v > most ? v : most;
  for (uint64_t i = whole; i < k; ++i) {
    const float size = __builtin_fabsf(x[i]);
    most = size > most ? size : most;
  }
  const float scale = 127.0f / most;
  *s = scale;
  for (uint64_t i = 0; i < whole; i += lanes) {
    const bytes v = to_bytes(quantised(load(x + i), scale));
    std::memcpy(q + i, &v, sizeof v);
  }
  if (whole == k) return;
  const block rest(x + whole, k - whole, 0);
  int8_t out[16];
  for (uint64_t j = 0; j < 16; j += lanes) {
    const bytes v = to_bytes(quantised(load(rest.x + j), scale));
    std::memcpy(out + j, &v, sizeof v);
  }
  std::memcpy(q + whole, out, k - whole);
}

void BITNET_ROW(act_quant_groups)(const float* x, uint64_t k, uint64_t group, int8_t* q, float* d) {
  for (uint64_t at = 0; at < k; at += group, x += group, q += group, ++d) {
    floats largest[vectors] = {};
    for (uint64_t i = 0; i < group; i += 16)
      for (uint64_t j = 0; j < vectors; ++j) {
        const floats v = load(x + i + j * lanes);
        const floats size = reinterpret_cast<floats>(reinterpret_cast<words>(v) & 0x7fffffffu);
        largest[j] = size > largest[j] ? size : largest[j];
      }
    float p[16], most = 1e-30f;
    std::memcpy(p, largest, sizeof p);
    for (const float v : p) most = v > most ? v : most;
    *d = most / 127.0f;
    const float scale = 127.0f / most;
    for (uint64_t i = 0; i < group; i += lanes) {
      auto codes = quantised(load(x + i), scale);
      codes = codes > -127 ? codes : codes * 0 - 127;
      const bytes v = to_bytes(codes);
      std::memcpy(q + i, &v, sizeof v);
    }
  }
}

// Pairs less than 16 apart are computed within a small array, the others as vectors.
void BITNET_ROW(hadamard)(const float* x, const float* factors, bool first, uint64_t k,
                          uint64_t block, float* y) {
  if (factors && first) {
    for (uint64_t i = 0; i < k; ++i) y[i] = x[i] * factors[i];
  } else {
    std::memcpy(y, x, k * sizeof(float));
  }
  const auto pairs = [](float* at, uint64_t d) {
    for (uint64_t j = 0; j < d; ++j) {
      const float a = at[j], b = at[j + d];
      at[j] = a + b;
      at[j + d] = a - b;
    }
  };
  const uint64_t near = block < 16 ? block : 16;
  for (uint64_t i = 0; i < k; i += near)
    for (uint64_t d = 1; d < near; d *= 2)
      for (uint64_t j = i; j < i + near; j += 2 * d) pairs(y + j, d);
  for (uint64_t d = near; d < block; d *= 2)
    for (uint64_t i = 0; i < k; i += 2 * d)
      for (uint64_t j = i; j < i + d; j += lanes) {
        const floats a = load(y + j), b = load(y + j + d);
        store(a + b, y + j);
        store(a - b, y + j + d);
      }
  const auto scale = static_cast<float>(1 / __builtin_sqrt(static_cast<double>(block)));
  for (uint64_t i = 0; i < k; ++i) y[i] *= scale;
  if (!factors || first) return;
  for (uint64_t i = 0; i < k; ++i) y[i] *= factors[i];
}

void BITNET_ROW(add)(const float* a, const float* b, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = a[i] + b[i];
}

void BITNET_ROW(mul)(const float* a, const float* b, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = a[i] * b[i];
}

void BITNET_ROW(relu2)(const float* x, uint64_t k, float* y) {
  uint64_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    const floats v = load(x + i), positive = v > 0.0f ? v : floats{};
    store(positive * positive, y + i);
  }
  for (; i < k; ++i) {
    const float positive = x[i] > 0 ? x[i] : 0;
    y[i] = positive * positive;
  }
}

void BITNET_ROW(silu)(const float* x, uint64_t k, float* y) {
  uint64_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    const floats v = load(x + i);
    store(v / (1.0f + exponential(-v)), y + i);
  }
  if (i == k) return;
  block rest(x + i, k - i, 0);
  const floats v = load(rest.x);
  store(v / (1.0f + exponential(-v)), rest.x);
  std::memcpy(y + i, rest.x, (k - i) * sizeof(float));
}

void BITNET_ROW(gelu)(const float* x, uint64_t k, float* y) {
  const auto of = [](floats v) {
    const floats inner = 1.5957691216f + 0.0713548163f * (v * v);
    return v / (1.0f + exponential(-v * inner));
  };
  uint64_t i = 0;
  for (; i + lanes <= k; i += lanes) store(of(load(x + i)), y + i);
  if (i == k) return;
  block rest(x + i, k - i, 0);
  store(of(load(rest.x)), rest.x);
  std::memcpy(y + i, rest.x, (k - i) * sizeof(float));
}

void BITNET_ROW(sigmoid)(const float* x, uint64_t k, float* y) {
  uint64_t i = 0;
  for (; i + lanes <= k; i += lanes) store(1.0f / (1.0f + exponential(-load(x + i))), y + i);
  if (i == k) return;
  block rest(x + i, k - i, 0);
  store(1.0f / (1.0f + exponential(-load(rest.x))), rest.x);
  std::memcpy(y + i, rest.x, (k - i) * sizeof(float));
}

// N vectors of columns from column j on: their sums stay in registers.
namespace {
template <uint64_t N>
void delta_columns(const delta_token& t, uint64_t d_k, uint64_t d_v, uint64_t j, float* state,
                   float* y) {
  floats u[N], out[N];
  for (uint64_t c = 0; c < N; ++c) u[c] = out[c] = floats{};
  for (uint64_t i = 0; i < d_k; ++i) {
    const float k = t.k[i] * t.k_factor;
    const float* s = state + i * d_v + j;
    for (uint64_t c = 0; c < N; ++c) u[c] += k * (load(s + c * lanes) * t.decay);
  }
  for (uint64_t c = 0; c < N; ++c) u[c] = t.beta * (load(t.v + j + c * lanes) - u[c]);
  for (uint64_t i = 0; i < d_k; ++i) {
    const float k = t.k[i] * t.k_factor, q = t.q[i] * t.q_factor;
    float* s = state + i * d_v + j;
    for (uint64_t c = 0; c < N; ++c) {
      const floats next = load(s + c * lanes) * t.decay + k * u[c];
      store(next, s + c * lanes);
      out[c] += q * next;
    }
  }
  for (uint64_t c = 0; c < N; ++c) store(out[c], y + j + c * lanes);
}
}  // namespace

void BITNET_ROW(delta_rule)(const delta_token& t, uint64_t d_k, uint64_t d_v, float* state,
                            float* y) {
  constexpr uint64_t many = lanes == 16 ? 8 : 4;  // half of the registers, or fewer
  uint64_t j = 0;
  for (; j + many * lanes <= d_v; j += many * lanes) delta_columns<many>(t, d_k, d_v, j, state, y);
  for (; j + lanes <= d_v; j += lanes) delta_columns<1>(t, d_k, d_v, j, state, y);
  for (; j < d_v; ++j) {
    float u = 0, out = 0;
    for (uint64_t i = 0; i < d_k; ++i) u += (t.k[i] * t.k_factor) * (state[i * d_v + j] * t.decay);
    u = t.beta * (t.v[j] - u);
    for (uint64_t i = 0; i < d_k; ++i) {
      float& s = state[i * d_v + j];
      s = s * t.decay + (t.k[i] * t.k_factor) * u;
      out += (t.q[i] * t.q_factor) * s;
    }
    y[j] = out;
  }
}

void BITNET_ROW(scale)(const float* x, float factor, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] * factor;
}

float BITNET_ROW(softmax)(float* x, uint64_t n, float scale) {
  float largest = x[0] * scale;
  uint64_t i = 0;
  if (n >= lanes) {
    floats most = floats{} + largest;
    for (; i + lanes <= n; i += lanes) {
      const floats v = load(x + i) * scale;
      store(v, x + i);
      most = v > most ? v : most;
    }
    for (uint64_t j = 0; j < lanes; ++j) largest = most[j] > largest ? most[j] : largest;
  }
  for (; i < n; ++i) {
    x[i] *= scale;
    largest = x[i] > largest ? x[i] : largest;
  }
  floats sums[vectors] = {};
  const uint64_t whole = n / 16 * 16;
  for (i = 0; i < whole; i += 16)
    for (uint64_t j = 0; j < vectors; ++j) {
      const floats e = exponential(load(x + i + j * lanes) - largest);
      store(e, x + i + j * lanes);
      sums[j] += e;
    }
  float p[16];
  std::memcpy(p, sums, sizeof p);
  if (whole != n) {
    block rest(x + whole, n - whole, largest);
    for (uint64_t j = 0; j < 16; j += lanes)
      store(exponential(load(rest.x + j) - largest), rest.x + j);
    std::memcpy(x + whole, rest.x, (n - whole) * sizeof(float));
    for (uint64_t j = 0; j < n - whole; ++j) p[j] += rest.x[j];
  }
  return total(p);
}

void BITNET_ROW(rotate)(const float* x, const rotation& r, float* y) {
  const float* c = r.cosines;
  const float* s = r.sines;
  for (uint64_t h = 0; h < r.heads; ++h, x += r.head_dim, y += r.head_dim) {
    uint64_t i = 0;
    if (r.neox)
      for (; i + lanes <= r.pairs; i += lanes) {
        const floats a = load(x + i), b = load(x + i + r.pairs), cos = load(c + i),
                     sin = load(s + i);
        store(a * cos - b * sin, y + i);
        store(a * sin + b * cos, y + i + r.pairs);
      }
    const uint64_t step = r.neox ? 1 : 2, apart = r.neox ? r.pairs : 1;
    for (; i < r.pairs; ++i) {
      const float a = x[i * step], b = x[i * step + apart];
      y[i * step] = a * c[i] - b * s[i];
      y[i * step + apart] = a * s[i] + b * c[i];
    }
    for (i = 2 * r.pairs; i < r.head_dim; ++i) y[i] = x[i];
  }
}

void BITNET_ROW(halves)(const float* x, uint64_t k, uint8_t* y) {
  uint64_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    const auto h = to_halves(load(x + i));
    std::memcpy(y + 2 * i, &h, sizeof h);
  }
  if (i == k) return;
  const block rest(x + i, k - i, 0);
  const auto h = to_halves(load(rest.x));
  std::memcpy(y + 2 * i, &h, 2 * (k - i));
}

void BITNET_ROW(widen)(const uint8_t* x, uint64_t k, float* y) {
  uint64_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    halves h;
    std::memcpy(&h, x + 2 * i, sizeof h);
    store(from_halves(h), y + i);
  }
  if (i == k) return;
  halves h{};
  std::memcpy(&h, x + 2 * i, 2 * (k - i));
  const floats rest = from_halves(h);
  std::memcpy(y + i, &rest, (k - i) * sizeof(float));
}

void BITNET_ROW(quant_error)(const float* w, const int8_t* q, float d, uint64_t k, float* error,
                             float* size) {
  floats errors[vectors] = {}, sizes[vectors] = {};
  const uint64_t whole = k / 16 * 16;
  for (uint64_t i = 0; i < whole; i += 16)
    for (uint64_t j = 0; j < vectors; ++j) {
      bytes codes;
      std::memcpy(&codes, q + i + j * lanes, sizeof codes);
      const floats near = d * from_bytes(codes);
      const floats off = load(w + i + j * lanes) - near;
      errors[j] += off * off;
      sizes[j] += near * near;
    }
  float e[16], s[16];
  std::memcpy(e, errors, sizeof e);
  std::memcpy(s, sizes, sizeof s);
  for (uint64_t i = whole; i < k; ++i) {
    const float near = d * static_cast<float>(q[i]);
    e[i - whole] += (w[i] - near) * (w[i] - near);
    s[i - whole] += near * near;
  }
  *error = total(e);
  *size = total(s);
}

#include "rows_blocks.inl"

}  // namespace bitnet::cpu
