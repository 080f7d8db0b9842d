// The kernels of driver.hpp, with WAY defined. Work items see vectors of 64 bytes where they can:
// n is a multiple of 4 units.
#define ROW_UNITS 64u
#define ROWS 16u
#define VECTORS 4u
#define SUM4(v) ((v).x + (v).y + (v).z + (v).w)
#define SUM8(v) (SUM4((v).lo) + SUM4((v).hi))
#define SUM16(v) (SUM8((v).lo) + SUM8((v).hi))

uint16 numbers(uint i) {
  return ((uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) + 16 * i) * 2654435761u;
}

__kernel void fill(__global const uint16 *from, __global uint16 *to, uint n, uint repeats) {
  for (uint i = get_global_id(0); i < n / 4; i += get_global_size(0)) {
    const uint16 u = numbers(i);
    to[i] = WAY == 0 ? u : as_uint16(convert_float16(as_int16(u) >> 30));
  }
}

// This thread's part: the stretch of its group, shared, or one of its own.
#define RANGE                                                                           \
  const uint t = get_global_id(0), all = n / 4;                                         \
  const uint sharers = WAY == 0 ? get_local_size(0) : 1, place = t / sharers;           \
  const uint places = get_global_size(0) / sharers, each = (all + places - 1) / places; \
  const uint first = place * each + t % sharers, last = min(all, (place + 1) * each);

__kernel void read(__global const uint16 *from, __global uint *to, uint n, uint repeats) {
  RANGE
  uint16 sum = 0;
  for (uint i = first; i < last; i += sharers) sum += from[i];
  to[t] = SUM16(sum);
}

__kernel void copy(__global const uint16 *from, __global uint16 *to, uint n, uint repeats) {
  RANGE
  for (uint i = first; i < last; i += sharers) to[i] = from[i];
}

// Sums over this thread's tile.
#define SIDE (WAY == 0 ? 1 : 4)
#define DOT(name, vector, wide, sum_type, units, product, total)                          \
  __kernel void name(__global const vector *from, __global sum_type *to, uint n,          \
                     uint repeats) {                                                      \
    const uint t = get_global_id(0);                                                      \
    wide sums[SIDE * SIDE];                                                  \
    for (uint j = 0; j < SIDE * SIDE; ++j) sums[j] = 0;                      \
    for (uint r = 0; r < repeats; ++r)                                                    \
      for (uint i = 0; i < units; ++i)                                                    \
        for (uint e = 0; e < SIDE; ++e)                                              \
          for (uint v = 0; v < SIDE; ++v)                                         \
            sums[e * SIDE + v] +=                                                 \
                product(from[units * (VECTORS + (t + r + e) % ROWS) + i], from[units * v + i]); \
    for (uint j = 1; j < SIDE * SIDE; ++j) sums[0] += sums[j];               \
    to[t] = total(sums[0]);                                                               \
  }
#define OF_BYTES(w, x) as_uint16(convert_int16(convert_short16(w) * convert_short16(x)))
#define OF_FLOATS(w, x) ((w) * (x))
DOT(dot_bytes, char16, uint16, uint, ROW_UNITS, OF_BYTES, SUM16)
DOT(dot_f32, float16, float16, float, ROW_UNITS / 4, OF_FLOATS, SUM16)

__kernel void nothing(__global const uint *from, __global uint *to, uint n, uint repeats) {}
