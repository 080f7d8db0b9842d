#pragma once
// Facts about this machine, and the choice of an instruction set.

#include <string>
#include <string_view>

#include "bitnet/abi/info.h"
#include "bitnet/abi/tensor.h"
#include "kernels/variants.hpp"

namespace bitnet::cpu {

// Returns the best supported form, or the one named `wanted` if that is not empty. nullptr if there
// is no such form or this CPU cannot run it; then `why` lists the forms. A form with a kernel that
// the host found wrong (ids in `disabled`) is skipped, except the scalar one.
const isa_form* choose_isa(std::string_view wanted, std::string& why,
                           std::string_view disabled = "");

// The form whose kernels a process may compute with: `chosen`, or, if the operating system refuses
// permission for it, the next form that needs none.
const isa_form& permitted(const isa_form& chosen);

// `computing` is what permitted() returned. Only driver_version shows the difference, because a
// device's description must be the same in a probe, with permission, and in a program without.
bitnet_device_info describe_device(const isa_form& isa, const isa_form& computing);

}  // namespace bitnet::cpu
