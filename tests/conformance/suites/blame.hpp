#pragma once
// Which op is wrong. A case needs more than its op: rows come from an embedding and leave through
// GATHER_ROWS, and codes are seen through a ternary product only. What a test sees may be the fault
// of those.

#include <optional>
#include <string>
#include <vector>

#include "suites/trial.hpp"

namespace bitnet::conformance {

struct suspect {
  uint32_t op = BITNET_OP_NONE, format = BITNET_FORMAT_NONE;
  bool operator==(const suspect&) const = default;
};

// The primitives that cases of an op are made with and that the device has not, by name.
std::string scaffold_missing(const opened_device& device, uint32_t op);

// Whose fault the wrong result of a case is: the case's own op, others, or several that nothing
// outside of the plugin can distinguish.
std::vector<suspect> suspects_of(opened_device& device, const op_case& c, uint32_t flags);

// Lets the running test fail if its op is wrong; if others are, lets those fail in the suite ops
// and skips the running test.
void lay_blame(opened_device& device, const op_case& c, uint32_t flags, const comparison& found);

// Lets the op's test in the suite ops fail, whichever test runs.
void fail_test_of(const suspect& s, const std::string& text);

// Where a model without composites goes wrong, op by op: by more than `allowed`, a normalised mean
// squared error. Nothing if no result is wrong.
struct wrong_op {
  std::vector<suspect> since;  // the last right result, and wrong in cases of their own
  std::string text;
};
std::optional<wrong_op> first_wrong_op(opened_device& device, const model& m,
                                       const std::vector<int32_t>& tokens, double allowed);

}  // namespace bitnet::conformance
