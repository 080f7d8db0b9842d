#version 450
// The kernels of driver.hpp.
#extension GL_EXT_control_flow_attributes : enable
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint KERNEL = 0;
layout(constant_id = 2) const uint WAY = 0;
layout(std430, set = 0, binding = 0) readonly buffer from_buffer { uvec4 from[]; };
layout(std430, set = 0, binding = 1) writeonly buffer to_buffer { uvec4 to[]; };
layout(std430, set = 0, binding = 1) writeonly buffer sums_buffer { uint sums[]; };
layout(push_constant) uniform params { uint n, repeats; };

const uint FILL = 0, READ = 1, COPY = 2, DOT = 3, DOT_F32 = 4;
const uint ROW_UNITS = 64, ROWS = 16, VECTORS = 4;
const uint SIDE = WAY == 0 ? 1 : 4;  // of a tile

uvec4 numbers(uint i) {
  return (uvec4(0, 1, 2, 3) + 4 * i) * 2654435761u;
}

// Byte b of each word, signed.
ivec4 bytes(uvec4 u, int b) {
  return ivec4(u << (24 - 8 * b)) >> 24;
}

uint row_at(uint r) {
  return ROW_UNITS * (VECTORS + r % ROWS);
}

void main() {
  uint t = gl_GlobalInvocationID.x, threads = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  if (KERNEL == FILL) {
    for (uint i = t; i < n; i += threads) {
      uvec4 u = numbers(i);
      to[i] = WAY == 0 ? u : floatBitsToUint(vec4(ivec4(u) >> 30));
    }
  } else if (KERNEL == READ || KERNEL == COPY) {
    uint sharers = WAY == 0 ? gl_WorkGroupSize.x : 1, place = t / sharers;
    uint places = threads / sharers, each = (n + places - 1) / places;
    uint first = place * each + t % sharers, last = min(n, (place + 1) * each);
    uvec4 sum = uvec4(0);
    for (uint i = first; i < last; i += sharers) {
      uvec4 u = from[i];
      if (KERNEL == READ)
        sum += u;
      else
        to[i] = u;
    }
    if (KERNEL == READ) sums[t] = sum.x + sum.y + sum.z + sum.w;
  } else if (KERNEL == DOT) {
    ivec4 sums_[SIDE * SIDE];
    [[unroll]] for (uint j = 0; j < SIDE * SIDE; ++j) sums_[j] = ivec4(0);
    for (uint r = 0; r < repeats; ++r) {
      for (uint i = 0; i < ROW_UNITS; ++i) {
        uvec4 w[SIDE], x[SIDE];
        [[unroll]] for (uint e = 0; e < SIDE; ++e) w[e] = from[row_at(t + r + e) + i];
        [[unroll]] for (uint v = 0; v < SIDE; ++v) x[v] = from[v * ROW_UNITS + i];
        [[unroll]] for (int b = 0; b < 4; ++b)
          [[unroll]] for (uint e = 0; e < SIDE; ++e)
            [[unroll]] for (uint v = 0; v < SIDE; ++v)
              sums_[e * SIDE + v] += bytes(w[e], b) * bytes(x[v], b);
      }
    }
    ivec4 sum = ivec4(0);
    [[unroll]] for (uint j = 0; j < SIDE * SIDE; ++j) sum += sums_[j];
    sums[t] = uint(sum.x + sum.y + sum.z + sum.w);
  } else if (KERNEL == DOT_F32) {
    vec4 sums_[SIDE * SIDE];
    [[unroll]] for (uint j = 0; j < SIDE * SIDE; ++j) sums_[j] = vec4(0);
    for (uint r = 0; r < repeats; ++r) {
      for (uint i = 0; i < ROW_UNITS; ++i) {
        vec4 w[SIDE], x[SIDE];
        [[unroll]] for (uint e = 0; e < SIDE; ++e)
          w[e] = uintBitsToFloat(from[row_at(t + r + e) + i]);
        [[unroll]] for (uint v = 0; v < SIDE; ++v)
          x[v] = uintBitsToFloat(from[v * ROW_UNITS + i]);
        [[unroll]] for (uint e = 0; e < SIDE; ++e)
          [[unroll]] for (uint v = 0; v < SIDE; ++v) sums_[e * SIDE + v] += w[e] * x[v];
      }
    }
    vec4 sum = vec4(0);
    [[unroll]] for (uint j = 0; j < SIDE * SIDE; ++j) sum += sums_[j];
    sums[t] = floatBitsToUint(sum.x + sum.y + sum.z + sum.w);
  }
}
