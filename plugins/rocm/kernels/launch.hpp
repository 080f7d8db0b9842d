#pragma once
// The one argument of every kernel.

#include "gpu-common/simt/plain_launch.hpp"

namespace bitnet::kernels {

using launch = plain_launch;
using joined_launch = joined_launches<launch>;

}  // namespace bitnet::kernels
