#pragma once
// Names of ops as kernel ids and pages spell them.

#include <cstdint>
#include <string>
#include <vector>

namespace bitnet::conformance {

struct op_row {
  uint32_t id;
  std::string name;  // "linear_ternary"
};
const std::vector<op_row>& all_ops();
std::string op_name(uint32_t id);  // "op 4711" if there is none
const char* level_name(uint32_t level);
// "linear_dense.q8_0", "silu"
std::string kernel_name(uint32_t op, uint32_t format);

}  // namespace bitnet::conformance
