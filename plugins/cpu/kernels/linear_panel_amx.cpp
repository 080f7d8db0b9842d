// Built with AVX-512 and AMX flags: kernels only, nothing that runs before dispatch, no shared
// inline functions.
#include <immintrin.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

// Inline assembly: g++ 12's intrinsics do not declare what they read and write, and clang keeps
// variables in tiles only if it may choose their shapes. Neither compiler uses tiles otherwise, so
// the contents of a tile persist between statements.

inline void configure(const tile_shapes* shapes) {
  asm volatile("ldtilecfg %0" : : "m"(*shapes));
}

inline void release() {
  asm volatile("tilerelease");
}

template <int Tile>
inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
}

template <int Tile>
inline void load_tile(const void* from, uint64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(Tile) : "memory");
}

template <int Tile>
inline void store_tile(void* to, uint64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(Tile) : "memory");
}

template <int C, int A, int B>
inline void add_tile_products() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}

template <int C, int A, int B>
inline void add_weight_products() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}

#include "linear_panel_tiles.inl"

}  // namespace

void linear_panel_amx(const panel_tile& a) {
  all_in_tiles(a);
}

}  // namespace bitnet::cpu
