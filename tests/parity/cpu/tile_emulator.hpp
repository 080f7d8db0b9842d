#pragma once
// Matrix registers (AMX, palette 1) as Intel's manual defines them, for machines that have none:
// eight tiles of each thread. What the processor answers with a fault ends the program here, with a
// line that says why. Built without flags of an instruction set.

#include <cstdint>

#include "kernels/linear_panel.hpp"

namespace bitnet::parity {

void emulate_ldtilecfg(const cpu::tile_shapes& shapes);
void emulate_tilerelease();
void emulate_tilezero(int tile);
void emulate_tileloadd(int tile, const void* from, uint64_t stride);
void emulate_tilestored(int tile, void* to, uint64_t stride);
// TDPBSUD: c += a b, of int8 and uint8; TDPBSSD: of int8 and int8.
void emulate_tdpbsud(int c, int a, int b);
void emulate_tdpbssd(int c, int a, int b);
// Whether this thread has tiles, and how many products of them it has run.
bool emulator_is_configured();
uint64_t emulated_products();

}  // namespace bitnet::parity

namespace bitnet::cpu {

// linear_panel_amx of emulated tiles. Needs what linear_panel_avx512vnni needs.
void linear_panel_emulated(const panel_tile&);

}  // namespace bitnet::cpu
