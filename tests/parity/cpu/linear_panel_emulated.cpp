// The text of linear_panel_amx.cpp, with emulated tiles. Built with AVX-512 flags like it.
#include <immintrin.h>

#include <cstring>

#include "kernels/linear_grouped.hpp"
#include "tile_emulator.hpp"

namespace bitnet::cpu {
namespace {

inline void configure(const tile_shapes* shapes) {
  parity::emulate_ldtilecfg(*shapes);
}

inline void release() {
  parity::emulate_tilerelease();
}

template <int Tile>
inline void zero_tile() {
  parity::emulate_tilezero(Tile);
}

template <int Tile>
inline void load_tile(const void* from, uint64_t stride) {
  parity::emulate_tileloadd(Tile, from, stride);
}

template <int Tile>
inline void store_tile(void* to, uint64_t stride) {
  parity::emulate_tilestored(Tile, to, stride);
}

template <int C, int A, int B>
inline void add_tile_products() {
  parity::emulate_tdpbsud(C, A, B);
}

template <int C, int A, int B>
inline void add_weight_products() {
  parity::emulate_tdpbssd(C, A, B);
}

#include "kernels/linear_panel_tiles.inl"

}  // namespace

void linear_panel_emulated(const panel_tile& a) {
  all_in_tiles(a);
}

}  // namespace bitnet::cpu
