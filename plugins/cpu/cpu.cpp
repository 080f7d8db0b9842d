// The cpu backend: every primitive and every format, on the host's threads. The floor and the
// oracle.

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "bitnet/sdk/interpreter.hpp"
#include "device.hpp"
#include "primitives.hpp"

#define BITNET_CPU_VERSION "0.1.0"

BITNET_BACKEND_NOTE("cpu", BITNET_CPU_VERSION, "org.bitnet", "Apache-2.0", "")

namespace {

// Parameter "isa" forces an instruction set: a name of kernels/variants.hpp. "disable" names
// kernels that the host has found wrong here.
void describe(const bitnet_open_request& request, bitnet::sdk::definition& d) {
  d.name = "cpu";
  d.version = BITNET_CPU_VERSION;
  d.vendor = "org.bitnet";
  d.license = "Apache-2.0";
  d.life_flags = BITNET_LIFE_THREAD_FREE | BITNET_LIFE_UNLOADABLE | BITNET_LIFE_HOT_SWAP |
                 BITNET_LIFE_USES_HOST_POOL;
  std::string_view wanted, disabled;
  for (uint32_t i = 0; i < request.n_params; ++i) {
    const std::string_view key = bitnet::sdk::to_view(request.params[i].key);
    if (key == "isa") wanted = bitnet::sdk::to_view(request.params[i].value);
    if (key == "disable") disabled = bitnet::sdk::to_view(request.params[i].value);
  }
  const bitnet::cpu::isa_form* isa = bitnet::cpu::choose_isa(wanted, d.why_unavailable, disabled);
  if (!isa) return;
  d.engine = isa;
  d.device = bitnet::cpu::describe_device(*isa);
  bitnet::cpu::add_primitives(*isa, d);
  bitnet::cpu::add_composites(*isa, d);
  bitnet::cpu::add_others(*isa, d);
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::sdk::open_interpreter(host, request, out, err, describe);
}
