#pragma once
// TL1 and TL2: bitnet.cpp's layouts for table look-ups. They are cut into tiles. The tile sizes
// were compiled into the program that wrote the file, and the file does not have them.
//
// Source  docs/reference/weights.md#tl1, docs/reference/weights.md#tl2

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "formats/reading.hpp"

namespace bitnet::formats {

struct tl1_tile {
  uint64_t bm, bk;  // rows and columns of a tile
  uint64_t rows;    // of a block in it: 32 or 64; it has 256 / rows columns
};
struct tl2_tile {
  uint64_t bm, bk;  // blocks are 32 rows of 6 columns
};

// The place of element (r, c): its byte, and the shift of its nibble.
struct nibble {
  uint64_t byte;
  uint32_t shift;
};

// The nibble 3 t0 + t1 + 4 of columns c and c + 1 (c even).
nibble tl1_pair(const tl1_tile& tile, uint64_t k, uint64_t r, uint64_t c);

// The parts of a TL2 tensor, in bytes from its start. The first `k3` columns of a row are kept as
// triples, the others as pairs like those of TL1.
struct tl2_parts {
  uint64_t k3, signs, pairs, end;  // `end` of the codes; zeros from there to the scale
  uint64_t scale, bytes;           // offset of the f32 scale, and the size of all
};
// Needs k >= 256, k % bk a multiple of 32, m % bm == 0.
tl2_parts tl2_parts_of(const tl2_tile& tile, uint64_t k, uint64_t m);
// The nibble |9 a + 3 b + c| of columns c, c + 1, c + 2 (c % 3 == 0, c < k3).
nibble tl2_triple(const tl2_tile& tile, const tl2_parts& parts, uint64_t r, uint64_t c);
// Its sign: the byte, and the bit in it.
nibble tl2_sign(const tl2_tile& tile, const tl2_parts& parts, uint64_t r, uint64_t c);
// The nibble of columns c and c + 1 (c even, c >= k3).
nibble tl2_pair(const tl2_tile& tile, const tl2_parts& parts, uint64_t k, uint64_t r, uint64_t c);

// Looks up the published tables; the failure says why there is no tile.
result<tl1_tile> find_tl1_tile(tl1_tiles which, uint64_t k, uint64_t m);
result<tl2_tile> find_tl2_tile(uint64_t k, uint64_t m);
// Whether both sets of tiles have this shape, so that a TL1 file does not show which it uses.
bool is_tl1_ambiguous(uint64_t k, uint64_t m);

// Bytes of a whole TL1 tensor; the f32 scale stands 32 bytes before the end.
inline uint64_t tl1_bytes(uint64_t k, uint64_t m) {
  return k * m / 4 + 32;
}

}  // namespace bitnet::formats
