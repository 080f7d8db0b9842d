#pragma once
// What suites do with the device under test: cases of ops, claims of kernels, largest logits.

#include <string>
#include <vector>

#include "harness/plugin.hpp"
#include "model/runner.hpp"
#include "reference/op_case.hpp"
#include "reference/run_case.hpp"

namespace bitnet::conformance {

// On the device under test.
inline comparison run_case(opened_device& device, const op_case& c, uint32_t flags,
                           std::vector<float>* numbers = nullptr) {
  return run_case(device.table(), device.device, c, flags, numbers);
}

// error_squares / squares.
double nmse(double error_squares, double squares);
double nmse(const std::vector<float>& a, const std::vector<float>& b);

// The most that nmse may be where codes may round the other way somewhere on the way: a code of an
// activation that does moves a result by amax / 127 of what one input adds, about 3e-3 of its usual
// size at 128 inputs; a few of them in a row, through two layers, squared.
inline constexpr double few_codes = 1e-4;

// The ops that a composite's definition in ops.h cannot do without; none for a primitive.
std::vector<uint32_t> body_of(uint32_t composite);

// What the run says against the claim that this op and format are computed at `level`: fallen back
// to something slower, or kernels that were not listed. "" if nothing.
std::string broken_claim(const std::vector<bitnet_kernel_info>& listed,
                         const std::vector<bitnet_kernel_stat>& ran, uint32_t op, uint32_t level);

// The logits of the first token of a step that wants only its `top` largest ones.
std::vector<float> largest_of(runner& r, const std::vector<token_in>& in, uint32_t top);
// What is wrong with them, where `whole` are all logits: each is as there, or -infinity and not
// among the largest; top 0: all are wanted. "" if nothing.
std::string wrong_largest(const std::vector<float>& whole, const std::vector<float>& found,
                          uint32_t top);

// What is wrong with a list of the `top` largest logits itself; "" if nothing, and `row`, which has
// all logits' room, is then what it says.
std::string wrong_list(const bitnet_largest& list, uint32_t top, std::vector<float>& row);

bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

// The primitives of the model that the device cannot compute, by name; "" if it can all.
std::string missing_ops(const opened_device& device, const model& m);

}  // namespace bitnet::conformance
