#pragma once
// Which build of another engine the options and variables of a command mean.

#include "commands/crossval_report.hpp"
#include "library/engine.hpp"

namespace bitnet::host {

// Reads files, executes nothing. Warns of BITNET_CPP_PATH.
[[nodiscard]] find_report search_build(const invocation& in);

}  // namespace bitnet::host
