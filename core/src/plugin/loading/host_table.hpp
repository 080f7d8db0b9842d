#pragma once
// Makes the C table of host_services that plugins get.

#include "bitnet/abi/host.h"
#include "plugin/loading/backend.hpp"

namespace bitnet::plugin {

// Valid as long as `services`. Exceptions of a service do not reach the plugin.
[[nodiscard]] bitnet_host_v0 make_host_table(host_services& services);

}  // namespace bitnet::plugin
