#pragma once
// Facts about this machine, and which instruction set to use.

#include <string>
#include <string_view>

#include "bitnet/abi/info.h"
#include "bitnet/abi/tensor.h"
#include "kernels/variants.hpp"

namespace bitnet::cpu {

// The best supported form, or the one called `wanted` if that is not empty. nullptr if there is no
// such form or this CPU cannot run it; then `why` says what there is.
const isa_form* choose_isa(std::string_view wanted, std::string& why);

bitnet_device_info describe_device(const isa_form& isa);

}  // namespace bitnet::cpu
