#pragma once
// Finds the build of another engine that a command's options and variables point to.

#include "commands/crossval_report.hpp"
#include "session/engine.hpp"

namespace bitnet::host {

// Reads files and executes nothing. Warns about BITNET_CPP_PATH.
[[nodiscard]] find_report search_build(const invocation& in);

}  // namespace bitnet::host
