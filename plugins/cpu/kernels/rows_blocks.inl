// Blocks of formats: stores keys and values, and decodes rows of weights. A part of
// rows_vector.inl, in its namespace.
//
// Expects  of that file BITNET_ROW, lanes, the types floats, integers, words, bytes and octets, and
//          load, store, load_octets, widened, widened_half and quantised; to_bytes of the
//          conversions.
// Gives    `q8_0`, `q4_0`, `from_q4_0`, `from_q4_k` and `from_q6_k` of rows.hpp, each with the
//          suffix of the form.
// Used by  rows_vector.inl.

namespace {

// Codes of BITNET_DTYPE_Q4_0; NaN becomes 0.
inline octets four_bits(floats x, float inverse) {
  const floats scaled = x * inverse;
  floats v = scaled + 8.5f;
  v = v > 0.0f ? v : floats{};
  v = v < 15.0f ? v : floats{} + 15.0f;
  return reinterpret_cast<octets>(to_bytes(__builtin_convertvector(v, integers)));
}

}  // namespace

void BITNET_ROW(q8_0)(const float* x, uint64_t k, uint8_t* y) {
  for (; k != 0; k -= 32, x += 32, y += 34) {
    floats most = {};
    for (uint64_t i = 0; i < 32; i += lanes) {
      const floats v = load(x + i);
      const floats size = reinterpret_cast<floats>(reinterpret_cast<words>(v) & 0x7fffffffu);
      most = size > most ? size : most;
    }
    float largest = 0, step = 0;
    for (uint64_t i = 0; i < lanes; ++i) largest = most[i] > largest ? most[i] : largest;
    const float exact = largest / 127.0f, d = exact < 65504.0f ? exact : 65504.0f;
    BITNET_ROW(halves)(&d, 1, y);
    BITNET_ROW(widen)(y, 1, &step);
    const float inverse = step > 0 ? 1.0f / step : 0;
    for (uint64_t i = 0; i < 32; i += lanes) {
      integers q = quantised(load(x + i), inverse);
      q = q > -127 ? q : integers{} - 127;
      const bytes v = to_bytes(q);
      std::memcpy(y + 2 + i, &v, sizeof v);
    }
  }
}

void BITNET_ROW(q4_0)(const float* x, uint64_t k, uint8_t* y) {
  for (; k != 0; k -= 32, x += 32, y += 18) {
    floats most = {};
    for (uint64_t i = 0; i < 32; i += lanes) {
      const floats v = load(x + i);
      const floats size = reinterpret_cast<floats>(reinterpret_cast<words>(v) & 0x7fffffffu);
      most = size > most ? size : most;
    }
    float largest = 0, extreme = 0, d = 0;
    for (uint64_t i = 0; i < lanes; ++i) largest = most[i] > largest ? most[i] : largest;
    for (uint64_t i = 0; largest > 0 && extreme == 0; ++i)  // the first of them gives the sign
      extreme = __builtin_fabsf(x[i]) == largest ? x[i] : 0;
    float step = extreme / -8.0f;
    step = step > -65504.0f ? step : -65504.0f;
    step = step < 65504.0f ? step : 65504.0f;
    BITNET_ROW(halves)(&step, 1, y);
    BITNET_ROW(widen)(y, 1, &d);
    const float inverse = d != 0 ? 1.0f / step : 0;
    for (uint64_t i = 0; i < 16; i += lanes) {
      const octets low = four_bits(load(x + i), inverse);
      const octets high = four_bits(load(x + i + 16), inverse);
      const octets pairs = low | high << 4;
      std::memcpy(y + 2 + i, &pairs, sizeof pairs);
    }
  }
}

void BITNET_ROW(from_q4_0)(const uint8_t* x, uint64_t k, float* y) {
  for (; k != 0; k -= 32, x += 18, y += 32) {
    const float d = widened_half(x);
    for (uint64_t i = 0; i < 16; i += lanes) {
      const octets pairs = load_octets(x + 2 + i);
      store(d * (widened(pairs & 15) - 8.0f), y + i);
      store(d * (widened(pairs >> 4) - 8.0f), y + i + 16);
    }
  }
}

void BITNET_ROW(from_q4_k)(const uint8_t* x, uint64_t k, float* y) {
  for (; k != 0; k -= 256, x += 144, y += 256) {
    const float d = widened_half(x), dmin = widened_half(x + 2);
    const uint8_t* s = x + 4;
    for (uint64_t j = 0; j < 8; ++j) {  // parts of 32
      const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
      const int minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
      const float step = d * static_cast<float>(scale);
      const float offset = dmin * static_cast<float>(minimum);
      for (uint64_t i = 0; i < 32; i += lanes) {
        const octets pairs = load_octets(x + 16 + j / 2 * 32 + i);
        store(step * widened(j % 2 != 0 ? pairs >> 4 : pairs & 15) - offset, y + 32 * j + i);
      }
    }
  }
}

void BITNET_ROW(from_q6_k)(const uint8_t* x, uint64_t k, float* y) {
  for (; k != 0; k -= 256, x += 210, y += 256) {
    const float d = widened_half(x + 208);
    for (uint64_t half = 0; half < 2; ++half)
      for (uint64_t i = 0; i < 32; i += lanes) {
        const uint8_t* scales = x + 192 + 8 * half + i / 16;
        const octets near = load_octets(x + 64 * half + i);
        const octets far = load_octets(x + 64 * half + 32 + i);
        const octets top = load_octets(x + 128 + 32 * half + i);
        float* to = y + 128 * half + i;
        const auto put = [&](uint64_t quarter, octets q) {
          const auto scale = static_cast<float>(static_cast<int8_t>(scales[2 * quarter]));
          store(d * scale * (widened(q) - 32.0f), to + 32 * quarter);
        };
        put(0, (near & 15) | (top & 3) << 4);
        put(1, (far & 15) | (top >> 2 & 3) << 4);
        put(2, near >> 4 | (top >> 4 & 3) << 4);
        put(3, far >> 4 | top >> 6 << 4);
      }
  }
}
