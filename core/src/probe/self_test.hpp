#pragma once
// Tests whether a backend computes correctly: runs the golden programs (golden.hpp) on every
// device.

#include <string>
#include <vector>

#include "plugin/loading/backend.hpp"
#include "probe/devices.hpp"

namespace bitnet::probe {

// A program with a wrong result.
struct wrong_result {
  std::string text;                  // "linear_ternary.ternary2: row 0 of token 0 of 1 is 136, ..."
  std::vector<std::string> kernels;  // ids of kernels that ran and may be the cause
};

struct self_test_result {
  std::vector<wrong_result> wrong;
  std::string summary;  // "linear_ternary.ternary2: right; linear_dense.f32: right", or the fault
  // One per device, as in device_report.
  std::vector<product_rates> rates;
  std::vector<compute::activity> status;
};

// Runs each program whose kernels a device lists, and times ternary products. BN-P-FAILED if a call
// fails, BN-P-SELF-TEST if a result is wrong and no counted kernel can be the cause.
[[nodiscard]] plugin::checked<self_test_result> run_self_test(
    const plugin::backend& b, const std::vector<device_report>& devices);

}  // namespace bitnet::probe
