// A real backend that loses its device: the plugin in the file that the setting "wrapped" names,
// and losing.hpp around it. LOSING_NAME is its name.

#include <dlfcn.h>

#include "../fakes/losing.hpp"
#include "bitnet/abi/note.h"

BITNET_BACKEND_NOTE(LOSING_NAME, "0.1.0", "org.bitnet.test", "Apache-2.0",
                    BITNET_NOTE_FIELD("flags", "hot-swap"))

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  const std::string file = bitnet::losing::setting(*request, "wrapped");
  // Stays for ever, as libraries of drivers do.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = library == nullptr ? nullptr : dlsym(library, BITNET_BACKEND_ENTRY_NAME);
  if (file.empty() || entry == nullptr) {
    if (err != nullptr) {
      err->code = BITNET_UNAVAILABLE;
      std::snprintf(err->message, sizeof err->message,
                    "setting wrapped is '%.120s'; expected the file of a backend", file.c_str());
    }
    return BITNET_UNAVAILABLE;
  }
  const bitnet_status opened =
      reinterpret_cast<bitnet_backend_entry>(entry)(host, request, out, err);
  if (opened == BITNET_OK) bitnet::losing::lose(*request, *out);
  return opened;
}
