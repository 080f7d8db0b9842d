#pragma once
// Kernels whose work another one could do as well show that they give the same bits: in the child
// of a probe, when a device is opened and nothing takes its memory yet. A kernel with other bits is
// not used.
//
// A form that waits for a barrier gives up after a while, and what it leaves then differs. One that
// runs on past the device's patience, or loses the device, ends the check: it is the last of
// `found`, and the device cannot be used in this process.

#include <string>
#include <vector>

#include "cuda_device.hpp"

namespace bitnet::cuda {

// What a form was seen to do, in words that follow its name.
struct form_fault {
  std::string form, what;
};
// Looks at all forms that are not in `off`. Takes some 500 KB of memory for that time. Fails if a
// call does; BITNET_TIMEOUT or BITNET_DEVICE_LOST may be the last form's fault.
bitnet_status check_forms(device& on, const forms& off, std::vector<form_fault>& found,
                          const sdk::reporter& report);

}  // namespace bitnet::cuda
