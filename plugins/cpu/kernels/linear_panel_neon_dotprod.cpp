// Built with +dotprod: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

#include "products_neon_dotprod.inl"

constexpr uint64_t registers = 4, at_once = 4, steps_of_part = 0;

#include "linear_panel_vector.inl"

}  // namespace

void linear_panel_neon_dotprod(const panel_tile& a) {
  multiply_tile(a);
}

}  // namespace bitnet::cpu
