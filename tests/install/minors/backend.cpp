// A backend of the SDK's ready primitives for hosts of several minors.

#include <cstdio>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "bitnet/sdk/interpreter.hpp"
#include "bitnet/sdk/reference/primitives.hpp"

BITNET_BACKEND_NOTE_MINORS(OLDEST, NEWEST, "minors", "0.1.0", "org.bitnet.test", "Apache-2.0",
                           BITNET_NOTE_FIELD("class", "cpu"))

namespace {

void describe(const bitnet_open_request&, bitnet::sdk::definition& d) {
  d.name = "minors";
  d.version = "0.1.0";
  d.vendor = "org.bitnet.test";
  d.license = "Apache-2.0";
  d.device.device_class = BITNET_DEVICE_CPU;
  std::snprintf(d.device.name, sizeof d.device.name, "ABI 0.%u of 0.%d to 0.%d", d.abi_minor,
                OLDEST, NEWEST);
  bitnet::sdk::reference::complete(d);
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::sdk::open_interpreter(host, request, out, err, describe, {OLDEST, NEWEST});
}
