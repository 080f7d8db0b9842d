#pragma once
// Finds the differences between a plan and what a program runs.

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace bitnet::host::plans {

// A message per difference: "layers 0-2 on cpu:0, op x, a step of one token: wanted kernel a, had
// b". Empty: the plan is kept. Parts that the plan leaves open are not compared.
[[nodiscard]] std::vector<std::string> differences(const plan& wanted, const plan& had);

// Whether `name` in a plan means the kernel `id`: the id itself, or a name of BitNet-rs.
[[nodiscard]] bool is_named(const std::string& name, const std::string& id);

}  // namespace bitnet::host::plans
