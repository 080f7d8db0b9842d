#pragma once
// host_services behind the C table that plugins see.

#include "bitnet/abi/host.h"
#include "plugin/loading/backend.hpp"

namespace bitnet::plugin {

// Valid as long as `services`. Nothing that a service throws reaches the plugin.
[[nodiscard]] bitnet_host_v0 make_host_table(host_services& services);

}  // namespace bitnet::plugin
