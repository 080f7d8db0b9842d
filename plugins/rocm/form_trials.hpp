#pragma once
// Which trials compare the forms of this backend's kernels (form_check.hpp of gpu-common).

#include <vector>

#include "gpu-common/forms/form_check.hpp"

namespace bitnet::rocm {

std::vector<gpu::form_trial> form_trials();

}  // namespace bitnet::rocm
