// SPDX-License-Identifier: Apache-2.0
// The backend's identity, and its one exported symbol. The SDK's interpreter does the rest: memory,
// weights, programs, queues, threads.

#include <cstdio>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "bitnet/sdk/interpreter.hpp"
#include "kernels.hpp"

#define NAME "sketch"
#define VERSION "0.1.0"
#define VENDOR "org.example"
#define LICENSE "Apache-2.0"

// Readable before a byte of the library runs.
BITNET_BACKEND_NOTE(NAME, VERSION, VENDOR, LICENSE,
                    BITNET_NOTE_FIELD("class", "cpu")
                        BITNET_NOTE_FIELD("flags", "hot-swap unloadable"))

namespace {

void describe(const bitnet_open_request&, bitnet::sdk::definition& d) {
  d.name = NAME;
  d.version = VERSION;
  d.vendor = VENDOR;
  d.license = LICENSE;
  d.life_flags |= BITNET_LIFE_HOT_SWAP | BITNET_LIFE_UNLOADABLE;
  d.primitives = sketch::kernels();
  if (d.primitives.empty()) {
    d.why_unavailable = "this backend has no kernel yet: go on with the tutorial";
    return;
  }
  d.device.device_class = BITNET_DEVICE_CPU;
  d.device.attention_flags = BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW;
  std::snprintf(d.device.name, sizeof d.device.name, "plain C++");
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::sdk::open_interpreter(host, request, out, err, describe);
}
