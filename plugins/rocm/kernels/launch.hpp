#pragma once
// What every kernel gets, whatever it computes: one value.

#include "gpu-common/simt/plain_launch.hpp"

namespace bitnet::kernels {

using launch = plain_launch;
using joined_launch = joined_launches<launch>;

}  // namespace bitnet::kernels
