#pragma once
// Kernels whose work another one could do as well show that they give the same bits: on each device
// when it is opened, and nothing takes its memory yet. What differs is done without.
//
// A form that hangs ends by itself: while it is looked at, it waits for phases of its barriers so
// long and no longer, and what it leaves then differs.

#include <string>
#include <vector>

#include "cuda_device.hpp"

namespace bitnet::cuda {

// What a form was seen to do, in words that follow its name.
struct form_fault {
  std::string form, what;
};
// Looks at all forms that are not in `off`. Takes some 500 KB of memory for that time.
bitnet_status check_forms(device& on, const forms& off, std::vector<form_fault>& found,
                          const sdk::reporter& report);

}  // namespace bitnet::cuda
