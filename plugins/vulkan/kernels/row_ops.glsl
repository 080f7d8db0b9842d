// RMS_NORM and ACT_QUANT_I8 of one row by one work group, as parts of several kernels. The including
// file defines X(i), the element i of the row that is read.

// a * a and its exact rounding error: high + low = a * a, barring underflow.
// Source  T. J. Dekker, A floating-point technique for extending the available precision, 1971.
void exact_square(float a, out float high, out float low) {
  precise float c = 4097.0 * a;
  precise float d = c - a;
  precise float h = c - d;
  precise float l = a - h;
  precise float p = a * a;
  precise float e = h * h - p;
  e = e + 2.0 * h * l;
  e = e + l * l;
  high = p;
  low = e;
}

// sum + x = sum' + error, exactly; the error is added to rest.
// Source  D. E. Knuth, The art of computer programming, volume 2, theorem 4.2.2 B.
void exact_add(inout float sum, float x, inout float rest) {
  precise float s = sum + x;
  precise float b = s - sum;
  precise float e = (sum - (s - b)) + (x - b);
  precise float r = rest + e;
  sum = s;
  rest = r;
}

#define DEFINE_NORM_FACTOR                                                         \
  /* The sum of x^2, with its rounding errors kept. */                             \
  float square_sum(uint k) {                                                       \
    float sum = 0.0, rest = 0.0;                                                   \
    for (uint i = thread(); i < k; i += threads()) {                               \
      float high, low;                                                             \
      exact_square(X(i), high, low);                                               \
      exact_add(sum, high, rest);                                                  \
      precise float r = rest + low;                                                \
      rest = r;                                                                    \
    }                                                                              \
    if (threads() > SUBGROUP) {                                                    \
      barrier();                                                                   \
      norm_sums[thread()] = sum;                                                   \
      norm_rests[thread()] = rest;                                                 \
      barrier();                                                                   \
    }                                                                              \
    for (uint half_ = threads() / 2; half_ >= SUBGROUP; half_ /= 2) {              \
      if (thread() < half_) {                                                      \
        exact_add(sum, norm_sums[thread() + half_], rest);                         \
        precise float both = rest + norm_rests[thread() + half_];                  \
        rest = both;                                                               \
        norm_sums[thread()] = sum;                                                 \
        norm_rests[thread()] = rest;                                               \
      }                                                                            \
      barrier();                                                                   \
    }                                                                              \
    /* Thread 0 takes the lower half of each pair in its first place, as above. */ \
    for (uint half_ = min(SUBGROUP, threads()) / 2; half_ != 0; half_ /= 2) {      \
      float other = ACROSS(sum, half_), other_rest = ACROSS(rest, half_);          \
      exact_add(sum, other, rest);                                                 \
      precise float both = rest + other_rest;                                      \
      rest = both;                                                                 \
    }                                                                              \
    precise float total = sum + rest;                                              \
    if (threads() > SUBGROUP) {                                                    \
      if (thread() == 0) norm_sums[0] = total;                                     \
      barrier();                                                                   \
      total = norm_sums[0];                                                        \
    } else {                                                                       \
      total = FROM(total, 0);                                                      \
    }                                                                              \
    return total;                                                                  \
  }                                                                                \
  /* 1 / sqrt(mean(x^2) + eps) */                                                  \
  float norm_factor(uint k, float eps) {                                           \
    precise float mean = square_sum(k) / float(k);                                 \
    precise float under = mean + eps;                                              \
    precise float factor = 1.0 / sqrt(under);                                      \
    return factor;                                                                 \
  }

float normed(float x, float factor, float weight) {
  precise float y = x * factor;
  y = y * weight;
  return y;
}

// 127 / max(a, 1e-5); comparisons ignore NaN.
float act_scale(float largest) {
  return exact_quotient(127.0, largest > 1e-5 ? largest : 1e-5);
}

uint quantised(float x, float scale) {
  precise float scaled = x * scale;
  float v = round_half_even(scaled);
  v = v > -128.0 ? v : -128.0;
  v = v < 127.0 ? v : 127.0;
  return uint(int(v)) & 255u;
}
