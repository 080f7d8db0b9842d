#pragma once
// The conformance kit's runner, under this folder's names.

#include "host.hpp"
#include "model/runner.hpp"
#include "tiny_model.hpp"

namespace bitnet::parity {

using conformance::call_failed;
using conformance::runner;
using conformance::runner_options;
using conformance::token_in;

}  // namespace bitnet::parity
