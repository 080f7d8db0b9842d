#pragma once
// What the products of the cpu backend get from a program's scratch, for calls of them alone.

#include <cstddef>

#include "ops/ops.hpp"

inline void* product_room() {
  alignas(64) static thread_local std::byte bytes[bitnet::cpu::room_bytes];
  return bytes;
}
