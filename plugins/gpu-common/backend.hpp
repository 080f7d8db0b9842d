#pragma once
// A whole backend for a plugin that has a driver: every slot of the contract's table.
//
//   bitnet_status BITNET_BACKEND_ENTRY(host, request, out, err) {
//     static const bitnet::gpu::author author{...};
//     return bitnet::gpu::open_backend(host, request, out, err, author);
//   }
//
// Threads  as the contract says.
// Errors   whatever comes over the edge is checked before it is used.

#include <map>
#include <memory>
#include <string>

#include "bitnet/abi/backend.h"
#include "bitnet/sdk/host.hpp"
#include "bitnet/sdk/table.hpp"
#include "driver.hpp"

namespace bitnet::gpu {

// Settings of the user, BITNET_<BACKEND>_<KEY>, and of the host: "disable" and "probed"
// (docs/reference/backend-rules.md). "purpose" is always that of the open request: "load", "probe"
// or "conformance".
using settings = std::map<std::string, std::string, std::less<>>;

struct author {
  const char* name;  // also the last part of kernel ids
  const char* version;
  const char* vendor;
  const char* license;
  const char* driver;
  uint32_t life_flags;
  // Loads the API's library and looks for devices. BITNET_UNAVAILABLE, with what the user can do,
  // where there are none. The host's services outlive the platform.
  bitnet_status (*load)(const sdk::host& services, const settings& user,
                        std::unique_ptr<platform>& out, const sdk::reporter& report);
};

bitnet_status open_backend(const bitnet_host_v0* services, const bitnet_open_request* request,
                           bitnet_backend_v0* out, bitnet_error* err, const author& description,
                           sdk::minors spoken = {}) noexcept;

}  // namespace bitnet::gpu
