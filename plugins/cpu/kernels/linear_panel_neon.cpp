// linear_panel.hpp with NEON, without the product instructions of later processors.
#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

#include "products_neon.inl"

constexpr uint64_t registers = 4, at_once = 2, steps_of_part = 32;

#include "linear_panel_vector.inl"

}  // namespace

void linear_panel_neon(const panel_tile& a) {
  multiply_tile(a);
}

}  // namespace bitnet::cpu
