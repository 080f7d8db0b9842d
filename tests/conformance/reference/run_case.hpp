#pragma once
// One case of an op on a device, and how far its answer is from the reference.

#include <string>
#include <vector>

#include "bitnet/abi/backend.h"
#include "reference/op_case.hpp"

namespace bitnet::conformance {

struct comparison {
  std::string rejected;              // the plugin's words if it cannot do this shape or format
  bitnet_status status = BITNET_OK;  // of the call that failed
  std::string wrong;  // the first number that is off, or another complaint; "" if there is none
  uint64_t n = 0, n_wrong = 0;
  double max_abs = 0, error_squares = 0, squares = 0;
  uint64_t max_ulp = 0;
  bool exact = true;                      // all bits as expected
  std::vector<bitnet_kernel_stat> stats;  // what ran
};

// `numbers`: where the logits go, (outputs, width); nullptr: the caller needs none.
comparison run_case(const bitnet_backend_v0& table, bitnet_device* device, const op_case& c,
                    uint32_t flags, std::vector<float>* numbers = nullptr);

// How many f32 lie between two numbers; large for NaN.
uint64_t ulps_between(float a, float b);

}  // namespace bitnet::conformance
