#pragma once
// Where what a program runs is not what a plan has.

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace bitnet::host::plans {

// A message for each place: "layers 0-2 on cpu:0, op x, a step of one token: wanted kernel a, had
// b". Empty: the plan is kept to. What the plan leaves open is not compared.
[[nodiscard]] std::vector<std::string> differences(const plan& wanted, const plan& had);

// Whether a kernel of this id is what a plan calls `name`: its id, or a name of BitNet-rs.
[[nodiscard]] bool is_named(const std::string& name, const std::string& id);

}  // namespace bitnet::host::plans
