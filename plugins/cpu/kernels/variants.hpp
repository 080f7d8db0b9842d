#pragma once
// The list of instruction sets with kernels. Selection, kernel ids and tests read it. It is not in
// the kernels' headers: files built with ISA flags include those, and must not emit a copy of any
// inline function.

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "attn_scores.hpp"
#include "linear_dense.hpp"
#include "linear_fives.hpp"
#include "linear_grouped.hpp"
#include "linear_i6.hpp"
#include "linear_i8.hpp"
#include "linear_panel.hpp"
#include "linear_ternary.hpp"
#include "rows.hpp"

namespace bitnet::cpu {

// A kernel with the instruction set that ends its name. Kernel ids use this name, so an id cannot
// name a function that does not run.
template <class Tile>
struct tile_kernel {
  const char* isa = "";
  void (*run)(const Tile&) = nullptr;  // nullptr: there is none
  void operator()(const Tile& tile) const { run(tile); }
};
#define BITNET_KERNEL(name, isa) {#isa, name##_##isa}

// Scores of many tokens. The scalar form has none: there each token reads the keys by itself.
struct score_kernels {
  const char* isa = "";
  void (*turn_keys)(const keys_tile&) = nullptr;
  void (*scores)(const scores_tile&) = nullptr;
};
#define BITNET_SCORES(isa) {#isa, turn_keys_##isa, attn_scores_##isa}

// Products with rows that are copied with five weights in a byte, for a single token. They also
// need what supported() checks, beyond the form's instruction set.
struct fives_kernels {
  bool (*supported)() = nullptr;  // nullptr: there are none
  void (*run)(const ternary_tile&) = nullptr;
  bool (*code)(const fives_rows&) = nullptr;
};
#define BITNET_FIVES(isa) {has_##isa, linear_fives_##isa, code_fives_##isa}

// The kernels that are chosen together. Not every instruction set has a form of every kernel: dot
// products of bytes do not help with floats. A form lacks the members that its row of isa_forms
// leaves out.
struct isa_form {
  const char* name = "";
  bool (*supported)() = nullptr;  // by this CPU and its operating system
  // Asks the operating system for permission to use what the form needs beyond supported(). True:
  // granted until the process ends. nullptr: no permission is needed.
  bool (*ask)() = nullptr;
  tile_kernel<ternary_tile> ternary = {};
  tile_kernel<grouped_tile> grouped = {};
  tile_kernel<panel_tile> panel = {};   // both for many tokens; may be none
  panel_size whole_panel = rows_panel;  // most that `panel` takes at once without groups
  // Panels use another instruction set than the rest, and ids name both: "avx512vnni+amx".
  bool both_named = false;
  // Instead of panels of whole rows, where faster; may be none.
  tile_kernel<panel_tile> tables = {};
  fives_kernels fives = {};
  tile_kernel<dense_tile> dense = {};  // f32, f16, bf16, q8_0, q4_0
  tile_kernel<weighted_rows> weighted_sum = {};
  score_kernels attention = {};
  row_kernels rows = {};
  tile_kernel<i8_tile> linear_i8 = {};
  tile_kernel<i8_tile> linear_i4 = {};
  // Instead of linear_i8, where it keeps up with the memory; may be none.
  tile_kernel<i6_tile> linear_i6 = {};
};

#if defined(__x86_64__)
// __builtin_cpu_supports also checks that the operating system saves the registers.
inline bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}
// g++ 12 has no name for AVX-VNNI: leaf 7, subleaf 1, EAX bit 4. Its registers are those of AVX2.
inline bool has_avxvnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("f16c");
}
inline bool has_avx512vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni");
}
inline bool has_avx512vbmi() {
  return has_avx512vnni() && __builtin_cpu_supports("avx512vbmi");
}
// Leaf 7, EDX: AMX-TILE and AMX-INT8. XCR0 says whether Linux saves tiles; it does not depend on
// this process's permission, which is not requested here.
inline bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!has_avx512vnni() || __get_cpuid(1, &a, &b, &c, &d) == 0 || (c >> 27 & 1) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d >> 24 & 3) != 3) return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a >> 17 & 3) == 3;
}
// Requests permission to use tiles for the whole process, until it ends. Call it only in a process
// that computes: afterwards signal stacks must be large enough for tiles, and if a thread already
// has a smaller one, the request is refused.
inline bool ask_for_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#endif

// Best first; on x86 docs/reference/benchmarks-kernels.md has the figures. The last row is always
// supported.
inline constexpr isa_form isa_forms[] = {
#if defined(__x86_64__)
    {.name = "amx",
     .supported = has_amx,
     .ask = ask_for_tiles,
     .ternary = BITNET_KERNEL(linear_ternary, avx512vnni),
     .grouped = BITNET_KERNEL(linear_grouped, avx512vnni),
     .panel = BITNET_KERNEL(linear_panel, amx),
     .whole_panel = tiles_panel,
     .both_named = true,
     .fives = BITNET_FIVES(avx512vbmi),
     .dense = BITNET_KERNEL(linear_dense, avx512),
     .weighted_sum = BITNET_KERNEL(weighted_sum, avx512),
     .attention = BITNET_SCORES(avx512),
     .rows = BITNET_ROWS(avx512),
     .linear_i8 = BITNET_KERNEL(linear_i8, avx512vnni),
     .linear_i4 = BITNET_KERNEL(linear_i4, avx512vnni),
     .linear_i6 = BITNET_KERNEL(linear_i6, avx512vnni)},
    {.name = "avx512vnni",
     .supported = has_avx512vnni,
     .ternary = BITNET_KERNEL(linear_ternary, avx512vnni),
     .grouped = BITNET_KERNEL(linear_grouped, avx512vnni),
     .panel = BITNET_KERNEL(linear_panel, avx512vnni),
     .tables = BITNET_KERNEL(linear_tables, avx512vnni),
     .fives = BITNET_FIVES(avx512vbmi),
     .dense = BITNET_KERNEL(linear_dense, avx512),
     .weighted_sum = BITNET_KERNEL(weighted_sum, avx512),
     .attention = BITNET_SCORES(avx512),
     .rows = BITNET_ROWS(avx512),
     .linear_i8 = BITNET_KERNEL(linear_i8, avx512vnni),
     .linear_i4 = BITNET_KERNEL(linear_i4, avx512vnni),
     .linear_i6 = BITNET_KERNEL(linear_i6, avx512vnni)},
    {.name = "avx512",
     .supported = has_avx512,
     .ternary = BITNET_KERNEL(linear_ternary, avx512),
     .grouped = BITNET_KERNEL(linear_grouped, avx512),
     .panel = BITNET_KERNEL(linear_panel, avx512),
     .tables = BITNET_KERNEL(linear_tables, avx512),
     .dense = BITNET_KERNEL(linear_dense, avx512),
     .weighted_sum = BITNET_KERNEL(weighted_sum, avx512),
     .attention = BITNET_SCORES(avx512),
     .rows = BITNET_ROWS(avx512),
     .linear_i8 = BITNET_KERNEL(linear_i8, avx512),
     .linear_i4 = BITNET_KERNEL(linear_i4, avx512),
     .linear_i6 = BITNET_KERNEL(linear_i6, avx512)},
    {.name = "avxvnni",
     .supported = has_avxvnni,
     .ternary = BITNET_KERNEL(linear_ternary, avxvnni),
     .grouped = BITNET_KERNEL(linear_grouped, avxvnni),
     .panel = BITNET_KERNEL(linear_panel, avxvnni),
     .tables = BITNET_KERNEL(linear_tables, avxvnni),
     .dense = BITNET_KERNEL(linear_dense, avx2),
     .weighted_sum = BITNET_KERNEL(weighted_sum, avx2),
     .attention = BITNET_SCORES(avx2),
     .rows = BITNET_ROWS(avx2),
     .linear_i8 = BITNET_KERNEL(linear_i8, avxvnni),
     .linear_i4 = BITNET_KERNEL(linear_i4, avxvnni)},
    {.name = "avx2",
     .supported = has_avx2,
     .ternary = BITNET_KERNEL(linear_ternary, avx2),
     .grouped = BITNET_KERNEL(linear_grouped, avx2),
     .panel = BITNET_KERNEL(linear_panel, avx2),
     .tables = BITNET_KERNEL(linear_tables, avx2),
     .dense = BITNET_KERNEL(linear_dense, avx2),
     .weighted_sum = BITNET_KERNEL(weighted_sum, avx2),
     .attention = BITNET_SCORES(avx2),
     .rows = BITNET_ROWS(avx2),
     .linear_i8 = BITNET_KERNEL(linear_i8, avx2),
     .linear_i4 = BITNET_KERNEL(linear_i4, avx2)},
    {.name = "sse41",
     .supported = [] { return __builtin_cpu_supports("sse4.1") != 0; },
     .ternary = BITNET_KERNEL(linear_ternary, sse41),
     .grouped = BITNET_KERNEL(linear_grouped, sse41),
     .panel = BITNET_KERNEL(linear_panel, sse41),
     .dense = BITNET_KERNEL(linear_dense, sse41),
     .weighted_sum = BITNET_KERNEL(weighted_sum, sse41),
     .attention = BITNET_SCORES(sse41),
     .rows = BITNET_ROWS(sse41),
     .linear_i8 = BITNET_KERNEL(linear_i8, sse41),
     .linear_i4 = BITNET_KERNEL(linear_i4, sse41)},
#elif defined(__aarch64__)
    {.name = "neon-i8mm",
     .supported =
         [] {
           return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 &&
                  (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
         },
     .ternary = BITNET_KERNEL(linear_ternary, neon_i8mm),
     .grouped = BITNET_KERNEL(linear_grouped, neon_dotprod),
     .panel = BITNET_KERNEL(linear_panel, neon_dotprod),
     .dense = BITNET_KERNEL(linear_dense, neon),
     .weighted_sum = BITNET_KERNEL(weighted_sum, neon),
     .attention = BITNET_SCORES(neon),
     .rows = BITNET_ROWS(neon),
     .linear_i8 = BITNET_KERNEL(linear_i8, neon_dotprod),
     .linear_i4 = BITNET_KERNEL(linear_i4, neon_dotprod)},
    {.name = "neon-dotprod",
     .supported = [] { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; },
     .ternary = BITNET_KERNEL(linear_ternary, neon_dotprod),
     .grouped = BITNET_KERNEL(linear_grouped, neon_dotprod),
     .panel = BITNET_KERNEL(linear_panel, neon_dotprod),
     .dense = BITNET_KERNEL(linear_dense, neon),
     .weighted_sum = BITNET_KERNEL(weighted_sum, neon),
     .attention = BITNET_SCORES(neon),
     .rows = BITNET_ROWS(neon),
     .linear_i8 = BITNET_KERNEL(linear_i8, neon_dotprod),
     .linear_i4 = BITNET_KERNEL(linear_i4, neon_dotprod)},
    {.name = "neon",
     .supported = [] { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0; },
     .ternary = BITNET_KERNEL(linear_ternary, neon),
     .grouped = BITNET_KERNEL(linear_grouped, neon),
     .panel = BITNET_KERNEL(linear_panel, neon),
     .dense = BITNET_KERNEL(linear_dense, neon),
     .weighted_sum = BITNET_KERNEL(weighted_sum, neon),
     .attention = BITNET_SCORES(neon),
     .rows = BITNET_ROWS(neon),
     .linear_i8 = BITNET_KERNEL(linear_i8, neon),
     .linear_i4 = BITNET_KERNEL(linear_i4, neon)},
#endif
    {.name = "scalar",
     .supported = [] { return true; },
     .ternary = BITNET_KERNEL(linear_ternary, scalar),
     .grouped = BITNET_KERNEL(linear_grouped, scalar),
     .panel = {.isa = "scalar"},
     .dense = BITNET_KERNEL(linear_dense, scalar),
     .weighted_sum = BITNET_KERNEL(weighted_sum, scalar),
     .attention = {.isa = "scalar"},
     .rows = BITNET_ROWS(scalar),
     .linear_i8 = BITNET_KERNEL(linear_i8, scalar),
     .linear_i4 = BITNET_KERNEL(linear_i4, scalar),
     .linear_i6 = BITNET_KERNEL(linear_i6, scalar)},
};

inline constexpr const isa_form& scalar_form =
    isa_forms[sizeof isa_forms / sizeof isa_forms[0] - 1];

}  // namespace bitnet::cpu
