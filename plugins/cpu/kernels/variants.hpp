#pragma once
// The instruction sets that there are kernels for: the only list. Selection, kernel ids and tests
// read it. Kept out of the kernels' headers: files built with ISA flags include those, and must not
// emit a copy of any inline function.

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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
  void (*linear_i4)(const i8_tile&);
};

#if defined(__x86_64__)
// What the compilers' own test asks the operating system for counts: it must save the registers.
inline bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}
// g++ 12 has no name for it: leaf 7, subleaf 1, EAX bit 4. Its registers are those of AVX2.
inline bool has_avxvnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("f16c");
}
#endif

// Best first; on x86 docs/reference/benchmarks.md has the figures. The last row is always
// supported.
inline constexpr isa_form isa_forms[] = {
#if defined(__x86_64__)
    {"avx512vnni", [] { return has_avx512() && __builtin_cpu_supports("avx512vnni"); },
     linear_ternary_avx512vnni, linear_dense_avx512, weighted_sum_avx512, BITNET_ROWS(avx512),
     linear_i8_avx512vnni, linear_i4_avx512vnni},
    {"avx512", has_avx512, linear_ternary_avx512, linear_dense_avx512, weighted_sum_avx512,
     BITNET_ROWS(avx512), linear_i8_avx512, linear_i4_avx512},
    {"avxvnni", has_avxvnni, linear_ternary_avxvnni, linear_dense_avx2, weighted_sum_avx2,
     BITNET_ROWS(avx2), linear_i8_avxvnni, linear_i4_avxvnni},
    {"avx2", has_avx2, linear_ternary_avx2, linear_dense_avx2, weighted_sum_avx2, BITNET_ROWS(avx2),
     linear_i8_avx2, linear_i4_avx2},
    {"sse41", [] { return __builtin_cpu_supports("sse4.1") != 0; }, linear_ternary_sse41,
     linear_dense_sse41, weighted_sum_sse41, BITNET_ROWS(sse41), linear_i8_sse41, linear_i4_sse41},
#elif defined(__aarch64__)
    {"neon-i8mm",
     [] {
       return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 &&
              (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
     },
     linear_ternary_neon_i8mm, linear_dense_neon, weighted_sum_neon, BITNET_ROWS(neon),
     linear_i8_neon_dotprod, linear_i4_neon_dotprod},
    {"neon-dotprod", [] { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; },
     linear_ternary_neon_dotprod, linear_dense_neon, weighted_sum_neon, BITNET_ROWS(neon),
     linear_i8_neon_dotprod, linear_i4_neon_dotprod},
    {"neon", [] { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0; }, linear_ternary_neon,
     linear_dense_neon, weighted_sum_neon, BITNET_ROWS(neon), linear_i8_neon, linear_i4_neon},
#endif
    {"scalar", [] { return true; }, linear_ternary_scalar, linear_dense_scalar, weighted_sum_scalar,
     BITNET_ROWS(scalar), linear_i8_scalar, linear_i4_scalar},
};

inline constexpr const isa_form& scalar_form =
    isa_forms[sizeof isa_forms / sizeof isa_forms[0] - 1];

}  // namespace bitnet::cpu
