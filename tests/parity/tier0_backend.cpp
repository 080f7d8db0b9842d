// A backend whose author wrote nothing but primitives, each as plainly as its definition: what the
// SDK's interpreter makes of it must be a whole backend. Shares no kernel with plugins/cpu, so that
// equal logits mean that two readings of ops.h agree.
//
// Compiled once for all plugins that are made of it: what they differ in is their tier0_variant.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "../fakes/losing.hpp"
#include "bitnet/sdk/interpreter.hpp"
#include "bitnet/sdk/reference/primitives.hpp"
#include "tier0_variant.hpp"

namespace {

using bitnet::sdk::call;
using bitnet::sdk::share;

// The sum of term(0) ... term(n - 1), in the order that plugins/cpu promises.
template <class T, class Term>
T sum_in_order(uint64_t n, Term term) {
  T p[16] = {};
  for (uint64_t i = 0; i < n; ++i) p[i % 16] += term(i);
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) p[j] += p[j + half];
  return p[0];
}

float dot(const float* a, const float* b, uint64_t n) {
  return sum_in_order<float>(n, [&](uint64_t i) { return a[i] * b[i]; });
}

// e^x by the steps of Cephes' expf, which plugins/cpu promises too.
float exponential(float x) {
  x = std::clamp(x, -104.0f, 89.0f);
  const float n = std::nearbyint(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 0;
  for (const float c : {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                        1.6666665459e-1f, 5.0000001201e-1f})
    p = p * r + c;
  p = (p * (r * r) + r) + 1.0f;
  const int e = static_cast<int>(n), first = e >> 1;
  return std::ldexp(std::ldexp(p, first), e - first);
}

// Block by block as ops.h and tensor.h say it, in another order of steps than plugins/cpu.
void put_q8_0(uint8_t* row, const float* x, uint64_t n) {
  for (uint64_t first = 0; first < n; first += 32) {
    uint8_t* block = row + first / 32 * 34;
    float m = 0;
    for (uint64_t i = first; i < first + 32; ++i) m = std::fmax(m, std::fabs(x[i]));
    const uint16_t d = bitnet::sdk::f32_to_f16(std::fmin(m / 127.0f, 65504.0f));
    std::memcpy(block, &d, 2);
    const float unit = bitnet::sdk::f16_to_f32(d);
    for (uint64_t i = 0; i < 32; ++i) {
      const float q =
          unit == 0 ? 0 : std::clamp(std::nearbyint(x[first + i] * (1 / unit)), -127.0f, 127.0f);
      const auto code = static_cast<int8_t>(q);
      std::memcpy(block + 2 + i, &code, 1);
    }
  }
}

// The same of Q4_0. With no step, 8 is the code of 0 in the sum as well.
void put_q4_0(uint8_t* row, const float* x, uint64_t n) {
  for (uint64_t first = 0; first < n; first += 32) {
    uint8_t* block = row + first / 32 * 18;
    const float* of = x + first;
    const float e = *std::max_element(of, of + 32, [](float a, float b) {
      return std::fabs(a) < std::fabs(b);  // the first of equals
    });
    const float s = e == 0 ? -0.0f : std::clamp(e * -0.125f, -65504.0f, 65504.0f);
    const uint16_t d = bitnet::sdk::f32_to_f16(s);
    std::memcpy(block, &d, 2);
    const float per = bitnet::sdk::f16_to_f32(d) == 0 ? 0 : 1 / s;
    std::memset(block + 2, 0, 16);
    for (uint64_t i = 0; i < 32; ++i) {
      const float units = of[i] * per;
      const auto code = static_cast<int>(std::floor(std::clamp(units + 8.5f, 0.0f, 15.0f)));
      block[2 + i % 16] |= static_cast<uint8_t>(code << (i < 16 ? 0 : 4));
    }
  }
}

float kv_element(const uint8_t* row, uint32_t dtype, uint64_t i) {
  float out = 0;
  if (dtype == BITNET_DTYPE_Q4_0) {
    const uint8_t* block = row + i / 32 * 18;
    const int code = block[2 + i % 16] >> (i % 32 < 16 ? 0 : 4) & 15;
    return bitnet::sdk::f16_to_f32(bitnet::sdk::load<uint16_t>(block)) *
           static_cast<float>(code - 8);
  }
  if (dtype == BITNET_DTYPE_Q8_0) {
    const uint8_t* block = row + i / 32 * 34;
    int8_t code = 0;
    std::memcpy(&code, block + 2 + i % 32, 1);
    return bitnet::sdk::f16_to_f32(bitnet::sdk::load<uint16_t>(block)) * static_cast<float>(code);
  }
  if (dtype == BITNET_DTYPE_F32)
    std::memcpy(&out, row + 4 * i, 4);
  else
    out = bitnet::sdk::f16_to_f32(bitnet::sdk::load<uint16_t>(row + 2 * i));
  return out;
}

void embed_gather(const call& c, const share& s) noexcept {
  for (uint64_t t = s.first; t < s.last; ++t) {
    const auto token = static_cast<uint64_t>(c.step->tokens[t]);
    float* y = c.output<float>(0) + t * c.m;
    bitnet::sdk::decode(c.w->format, c.w->row(token), 0, c.m, y);
    if (c.w->format == BITNET_FORMAT_TERNARY2)
      for (uint64_t i = 0; i < c.m; ++i)
        y[i] *= c.w->scales[c.w->scale_group ? (token * c.m + i) / c.w->scale_group : 0];
  }
}

void rms_norm(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r) {
    const float* x = c.input<float>(0) + r * c.k;
    const auto sum =
        sum_in_order<double>(c.k, [&](uint64_t i) { return double{x[i]} * double{x[i]}; });
    const float factor =
        1.0f / std::sqrt(static_cast<float>(sum / static_cast<double>(c.k)) + c.floats[0]);
    for (uint64_t i = 0; i < c.k; ++i)
      c.output<float>(0)[r * c.k + i] = x[i] * factor * c.w->f32()[i];
  }
}

void act_quant_i8(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r) {
    const float* x = c.input<float>(0) + r * c.k;
    float a = 0;
    for (uint64_t i = 0; i < c.k; ++i) a = std::max(a, std::fabs(x[i]));
    const float scale = 127.0f / std::max(a, 1e-5f);
    c.output<float>(1)[r] = scale;
    for (uint64_t i = 0; i < c.k; ++i) {
      const float code = std::clamp(std::nearbyint(x[i] * scale), -128.0f, 127.0f);
      c.output<int8_t>(0)[r * c.k + i] = static_cast<int8_t>(std::isnan(code) ? 0.0f : code);
    }
  }
}

void linear_ternary(const call& c, const share& s) noexcept {
  const uint64_t group = c.w->scale_group ? c.w->scale_group : c.k;
  for (uint64_t t = 0; t < c.rows; ++t) {
    const int8_t* q = c.input<int8_t>(0) + t * c.k;
    for (uint64_t m = s.first; m < s.last; ++m) {
      float scaled = 0;
      int32_t sum = 0;
      for (uint64_t i = 0; i < c.k; ++i) {
        sum += bitnet::sdk::ternary_at(c.w->row(m), i) * q[i];
        if (c.w->scale_group && (i + 1) % group == 0) {
          scaled += static_cast<float>(sum) * c.w->scales[(m * c.k + i) / group];
          sum = 0;
        }
      }
      const float act = c.input<float>(1)[t];
      c.output<float>(0)[t * c.m + m] =
          c.w->scale_group ? scaled / act : static_cast<float>(sum) / act * c.w->scales[0];
    }
  }
}

void linear_dense(const call& c, const share& s) noexcept {
  for (uint64_t m = s.first; m < s.last; ++m) {
    float row[8192];  // no model of the tests is wider
    bitnet::sdk::decode(c.w->format, c.w->row(m), 0, c.k, row);
    for (uint64_t t = 0; t < c.rows; ++t)
      c.output<float>(0)[t * c.m + m] = dot(row, c.input<float>(0) + t * c.k, c.k);
  }
}

void rope(const call& c, const share& s) noexcept {
  const auto head_dim = static_cast<uint64_t>(c.ints[1]), turned = static_cast<uint64_t>(c.ints[2]);
  for (uint64_t t = s.first; t < s.last; ++t) {
    for (uint64_t i = 0; i < c.k; ++i) {
      const uint64_t in_head = i % head_dim;
      const float* head = c.input<float>(0) + t * c.k + i - in_head;
      float& y = c.output<float>(0)[t * c.k + i];
      y = head[in_head];
      if (in_head >= turned) continue;
      const bool neox = c.ints[3] == BITNET_ROPE_NEOX;
      const uint64_t pair = neox ? in_head % (turned / 2) : in_head / 2;
      const bool second = neox ? in_head >= turned / 2 : in_head % 2 == 1;
      const uint64_t other =
          neox ? (second ? in_head - turned / 2 : in_head + turned / 2) : in_head ^ 1;
      double angle = c.step->positions[t] * double{c.floats[1]} *
                     std::pow(double{c.floats[0]},
                              -2.0 * static_cast<double>(pair) / static_cast<double>(turned));
      if (c.w) angle /= double{c.w->f32()[pair]};
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      y = second ? head[other] * sine + head[in_head] * cosine
                 : head[in_head] * cosine - head[other] * sine;
    }
  }
}

void kv_write(const call& c, const share& s) noexcept {
  const auto& kv = c.step->kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  const auto put = [](uint8_t* row, uint32_t dtype, const float* x, uint64_t n) {
    if (dtype == BITNET_DTYPE_Q8_0) return put_q8_0(row, x, n);
    if (dtype == BITNET_DTYPE_Q4_0) return put_q4_0(row, x, n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint16_t half = bitnet::sdk::f32_to_f16(x[i]);
      if (dtype == BITNET_DTYPE_F32)
        std::memcpy(row + 4 * i, x + i, 4);
      else
        std::memcpy(row + 2 * i, &half, 2);
    }
  };
  for (uint64_t t = s.first; t < s.last; ++t) {
    const auto slot = static_cast<uint64_t>(c.step->slots[t]);
    const float *k = c.input<float>(0) + t * c.k, *v = c.input<float>(1) + t * c.k;
    const uint64_t n = kv.head_dim;
    for (uint64_t head = 0; head < kv.n_kv_heads; ++head, k += n, v += n) {
      uint8_t *to_k = kv.k(layer, slot, head), *to_v = kv.v(layer, slot, head);
      put(to_k, kv.dtype_k, k, n);
      put(to_v, kv.dtype_v, v, n);
    }
  }
}

void attn_paged(const call& c, const share& s) noexcept {
  const auto& kv = c.step->kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  const auto kv_heads = static_cast<uint64_t>(c.ints[2]),
             head_dim = static_cast<uint64_t>(c.ints[3]);
  const uint64_t group = static_cast<uint64_t>(c.ints[1]) / kv_heads;
  for (uint64_t unit = s.first; unit < s.last; ++unit) {
    const uint64_t t = unit / kv_heads, kv_head = unit % kv_heads;
    const auto position = static_cast<uint64_t>(c.step->positions[t]);
    const auto own = static_cast<uint64_t>(c.ints[4]);  // the op's window
    // Calls f(i, j) for the i-th position j that is seen; returns how many there are. No list of
    // them: a kernel cannot say that there is no memory.
    const auto each_seen = [&](auto&& f) {
      uint64_t n = 0;
      for (uint64_t j = 0; j <= position; ++j)
        if ((c.step->window == 0 || j + c.step->window > position || j < c.step->window_keep) &&
            (own == 0 || j + own > position))
          f(n++, j);
      return n;
    };
    const auto slot = [&](uint64_t j) {
      return static_cast<uint64_t>(c.step->blocks_of(t)[j / kv.block_tokens]) * kv.block_tokens +
             j % kv.block_tokens;
    };
    for (uint64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const float* q = c.input<float>(0) + t * c.k + h * head_dim;
      float* y = c.output<float>(0) + t * c.k + h * head_dim;
      float largest = -INFINITY;
      const uint64_t seen = each_seen([&](uint64_t i, uint64_t j) {
        float key[256];
        for (uint64_t d = 0; d < head_dim; ++d)
          key[d] = kv_element(kv.k(layer, slot(j), kv_head), kv.dtype_k, d);
        s.scratch[i] = dot(key, q, head_dim) * c.floats[0];
        largest = std::max(largest, s.scratch[i]);
      });
      for (uint64_t i = 0; i < seen; ++i) s.scratch[i] = exponential(s.scratch[i] - largest);
      const auto sum = sum_in_order<float>(seen, [&](uint64_t i) { return s.scratch[i]; });
      for (uint64_t d = 0; d < head_dim; ++d) {
        float total = 0;
        each_seen([&](uint64_t i, uint64_t j) {
          total += s.scratch[i] * kv_element(kv.v(layer, slot(j), kv_head), kv.dtype_v, d);
        });
        y[d] = total / sum;
        if (tier0.wrong && position > 0) y[d] *= 1.25f;
      }
    }
  }
}

template <class Function>
void each(const call& c, const share& s, Function f) noexcept {
  for (uint64_t i = s.first * c.k; i < s.last * c.k; ++i) c.output<float>(0)[i] = f(i);
}
void add(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) { return c.input<float>(0)[i] + c.input<float>(1)[i]; });
}
void mul(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) { return c.input<float>(0)[i] * c.input<float>(1)[i]; });
}
void relu2(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) {
    const float x = std::max(c.input<float>(0)[i], 0.0f);
    return x * x;
  });
}
void silu(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) {
    const float x = c.input<float>(0)[i];
    return x / (1.0f + exponential(-x));
  });
}
void gelu(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) {
    const float x = c.input<float>(0)[i];
    return x / (1.0f + exponential(-x * (1.5957691216f + 0.0713548163f * (x * x))));
  });
}
void scale(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) { return c.input<float>(0)[i] * c.floats[0]; });
}
void sigmoid(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) { return 1.0f / (1.0f + exponential(-c.input<float>(0)[i])); });
}
void columns(const call& c, const share& s) noexcept {
  const auto at = [&](int i) { return static_cast<uint64_t>(c.ints[i]); };
  for (uint64_t r = s.first; r < s.last; ++r)
    for (uint64_t i = 0; i < c.m; ++i) {
      const uint64_t part = i / at(0);
      c.output<float>(0)[r * c.m + i] = c.input<float>(
          0)[r * c.k + at(1) + part / at(2) * at(5) + part % at(2) * at(3) + i % at(0)];
    }
}
void gather_rows(const call& c, const share& s) noexcept {
  for (uint64_t o = s.first; o < s.last; ++o)
    std::copy_n(c.input<float>(0) + static_cast<uint64_t>(c.step->output_rows[o]) * c.k, c.k,
                c.output<float>(0) + o * c.k);
}

void describe(const bitnet_open_request&, bitnet::sdk::definition& d) {
  d.name = tier0.name;
  d.version = "0.1.0";
  d.vendor = "org.bitnet.test";
  d.license = "Apache-2.0";
  if (!tier0.single) d.life_flags |= BITNET_LIFE_HOT_SWAP | BITNET_LIFE_UNLOADABLE;
  d.device.device_class = BITNET_DEVICE_CPU;
  std::snprintf(d.device.name, sizeof d.device.name, "tier 0");
  d.device.attention_flags = BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW;
  d.device.kv_dtypes = 1u << BITNET_DTYPE_F32 | 1u << BITNET_DTYPE_F16;
  if (!tier0.few_types) d.device.kv_dtypes |= 1u << BITNET_DTYPE_Q8_0 | 1u << BITNET_DTYPE_Q4_0;
  const auto row = [&](uint32_t op, const char* id, bitnet::sdk::primitive_kernel run) {
    d.primitives.push_back({op, BITNET_FORMAT_NONE, BITNET_LEVEL_REFERENCE,
                            BITNET_EXACT_BATCH | BITNET_EXACT_RUN, id, run});
  };
  row(BITNET_OP_EMBED_GATHER, "embed_gather", embed_gather);
  row(BITNET_OP_RMS_NORM, "rms_norm", rms_norm);
  row(BITNET_OP_ACT_QUANT_I8, "act_quant_i8", act_quant_i8);
  row(BITNET_OP_LINEAR_TERNARY, "linear_ternary", linear_ternary);
  namespace ready = bitnet::sdk::reference::kernels;
  row(BITNET_OP_RMS_NORM_HEADS, "rms_norm_heads", ready::rms_norm_heads);
  row(BITNET_OP_ACT_QUANT_I8_GROUPED, "act_quant_i8_grouped", ready::act_quant_i8_grouped);
  row(BITNET_OP_LINEAR_TERNARY_GROUPED, "linear_ternary_grouped", ready::linear_ternary_grouped);
  row(BITNET_OP_HADAMARD, "hadamard", ready::hadamard);
  row(BITNET_OP_LINEAR_DENSE, "linear_dense", linear_dense);
  row(BITNET_OP_ROPE, "rope", rope);
  row(BITNET_OP_KV_WRITE, "kv_write", kv_write);
  row(BITNET_OP_ATTN_PAGED, "attn_paged", attn_paged);
  row(BITNET_OP_ADD, "add", add);
  row(BITNET_OP_MUL, "mul", mul);
  row(BITNET_OP_RELU2, "relu2", relu2);
  row(BITNET_OP_SILU, "silu", silu);
  row(BITNET_OP_GELU, "gelu", gelu);
  row(BITNET_OP_SCALE, "scale", scale);
  row(BITNET_OP_SIGMOID, "sigmoid", sigmoid);
  row(BITNET_OP_COLUMNS, "columns", columns);
  row(BITNET_OP_SHORT_CONV, "short_conv", ready::short_conv);
  row(BITNET_OP_DELTA_GATES, "delta_gates", ready::delta_gates);
  row(BITNET_OP_DELTA_RULE, "delta_rule", ready::delta_rule);
  row(BITNET_OP_GATHER_ROWS, "gather_rows", gather_rows);
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  const bitnet_status opened = bitnet::sdk::open_interpreter(host, request, out, err, describe);
  if (opened == BITNET_OK && tier0.fragile) bitnet::losing::lose(*request, *out);
  return opened;
}
