#pragma once
// The instruction sets that there are kernels for: the only list. Selection, kernel ids and tests
// read it. Kept out of the kernels' headers: files built with ISA flags include those, and must not
// emit a copy of any inline function.

#include "linear_dense.hpp"
#include "linear_i8.hpp"
#include "linear_ternary.hpp"
#include "rows.hpp"

namespace bitnet::cpu {

struct isa_form {
  const char* name;
  bool (*supported)();  // by this CPU and its operating system
  void (*ternary)(const ternary_tile&);
  void (*dense)(const dense_tile&);  // f32, f16, bf16, q8_0
  void (*weighted_sum)(const weighted_rows&);
  row_kernels rows;
  void (*linear_i8)(const i8_tile&);
};

// Best first; the last row is always supported.
inline constexpr isa_form isa_forms[] = {
#if defined(__x86_64__)
    {"avx512vnni",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
              __builtin_cpu_supports("f16c");
     },
     linear_ternary_avx512vnni, linear_dense_avx512, weighted_sum_avx512, BITNET_ROWS(avx512),
     linear_i8_avx512vnni},
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"); },
     linear_ternary_avx2, linear_dense_avx2, weighted_sum_avx2, BITNET_ROWS(avx2), linear_i8_avx2},
#endif
    {"scalar", [] { return true; }, linear_ternary_scalar, linear_dense_scalar, weighted_sum_scalar,
     BITNET_ROWS(scalar), linear_i8_scalar},
};

inline constexpr const isa_form& scalar_form =
    isa_forms[sizeof isa_forms / sizeof isa_forms[0] - 1];

}  // namespace bitnet::cpu
