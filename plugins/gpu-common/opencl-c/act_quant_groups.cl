// One thread to a group of activations.
#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k, group;
} params;

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(uint, q), BIND(float, d),
       const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(uint, q);
  OPEN(float, d);
  const uint words = p.group / 4, groups = p.k / p.group;
  EACH_Y(r, header[p.rows]) {
    EACH_X(g, i8_stride(p.k) / words) {
      __global uint *codes = q + (ulong)r * i8_stride(p.k) + g * words;
      if (g >= groups) {  // padding
        for (uint w = 0; w < words; ++w) codes[w] = 0;
        continue;
      }
      __global const float *in = x + (ulong)r * p.k + g * p.group;
      float largest = 1e-30f;
      for (uint i = 0; i < p.group; ++i) largest = larger(largest, fabs(in[i]));
      const float scale = exact_quotient(127.0f, largest);
      for (uint w = 0; w < words; ++w) {
        const float4 v = vload4(w, in);
        codes[w] = packed4(quantised(v.x, scale), quantised(v.y, scale), quantised(v.z, scale),
                           quantised(v.w, scale));
      }
      d[(ulong)r * groups + g] = exact_quotient(largest, 127.0f);
    }
  }
}
