#pragma once
// The suite lint: what bitnet-backend-lint, where it lies beside this program, says of the file.

#include <string>

#include "harness/supervise.hpp"

namespace bitnet::conformance {

void run_lint(const std::string& file, findings& out);

}  // namespace bitnet::conformance
