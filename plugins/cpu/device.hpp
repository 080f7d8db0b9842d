#pragma once
// Facts about this machine, and which instruction set to use.

#include <string>
#include <string_view>

#include "bitnet/abi/info.h"
#include "bitnet/abi/tensor.h"
#include "kernels/variants.hpp"

namespace bitnet::cpu {

// The best supported form, or the one called `wanted` if that is not empty. nullptr if there is no
// such form or this CPU cannot run it; then `why` says what there is. A form of which the host has
// found a kernel wrong, by the ids in `disabled`, is none; the scalar one always is.
const isa_form* choose_isa(std::string_view wanted, std::string& why,
                           std::string_view disabled = "");

// The form whose kernels a process may compute with: this one, or, where the operating system does
// not give it leave to, the next that needs none.
const isa_form& permitted(const isa_form& chosen);

// `computing`: what permitted() says. The difference is in driver_version, since what a device says
// of itself must be the same in a probe, where leave was given, as in a program where it was not.
bitnet_device_info describe_device(const isa_form& isa, const isa_form& computing);

}  // namespace bitnet::cpu
