#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

constexpr bool in_place = false;  // a product of codes times 64 has no room in int16

#include "products_neon.inl"

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_neon(const grouped_tile& a) {
  all<4, 4>(a);
}

}  // namespace bitnet::cpu
