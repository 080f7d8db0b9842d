// The cpu backend: every primitive and every format, on the host's threads. It runs on any machine,
// and tests compare other backends with it.

#include <ctime>
#include <memory>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "bitnet/sdk/interpreter.hpp"
#include "device.hpp"
#include "meter.hpp"
#include "ops/tuning.hpp"
#include "primitives.hpp"

BITNET_BACKEND_NOTE("cpu", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "cpu")
                        BITNET_NOTE_FIELD("flags", "hot-swap unloadable"))

namespace {

template <bool LargePages>
std::string measure(const void* author_data, const bitnet::sdk::host& host, uint64_t budget_ns,
                    uint64_t cancel_token) {
  return bitnet::cpu::measure_tuning(*static_cast<const bitnet::cpu::isa_form*>(author_data), host,
                                     budget_ns, cancel_token, LargePages);
}

// Parameters: "isa" forces an instruction set named in kernels/variants.hpp. "head" selects how the
// largest logits are found: "exact" (the default) or "fast". "hugepages": "auto", or "off" for no
// large pages. "copies": "off" makes no copies of weights, "plain" none in fewer bytes. "disable"
// names kernels that the host found wrong here.
void describe(const bitnet_open_request& request, bitnet::sdk::definition& d) {
  d.name = "cpu";
  d.version = BITNET_BACKEND_VERSION;
  d.vendor = "org.bitnet";
  d.license = "Apache-2.0";
  d.life_flags = BITNET_LIFE_THREAD_FREE | BITNET_LIFE_UNLOADABLE | BITNET_LIFE_HOT_SWAP |
                 BITNET_LIFE_USES_HOST_POOL;
  const auto parameter = [&](std::string_view key) {
    std::string_view value;
    for (uint32_t i = 0; i < request.n_params; ++i)
      if (bitnet::sdk::to_view(request.params[i].key) == key)
        value = bitnet::sdk::to_view(request.params[i].value);
    return value;
  };
  const std::string_view head = parameter("head");
  if (!head.empty() && head != "exact" && head != "fast") {
    d.why_unavailable =
        "setting head is '" + std::string(head.substr(0, 64)) + "'; expected exact or fast";
    return;
  }
  const std::string_view pages = parameter("hugepages");
  if (!pages.empty() && pages != "auto" && pages != "off") {
    d.why_unavailable =
        "setting hugepages is '" + std::string(pages.substr(0, 64)) + "'; expected auto or off";
    return;
  }
  const std::string_view copies = parameter("copies");
  if (!copies.empty() && copies != "auto" && copies != "plain" && copies != "off") {
    d.why_unavailable = "setting copies is '" + std::string(copies.substr(0, 64)) +
                        "'; expected auto, plain or off";
    return;
  }
  d.large_pages = pages != "off";
  if (d.large_pages && copies != "off") d.copies_rows = bitnet::cpu::has_room_for_copies;
  const auto head_of = head == "fast" ? bitnet::cpu::fast_bits : bitnet::cpu::exact_bits;
  const std::string_view disabled = parameter("disable");
  const bitnet::cpu::isa_form* isa =
      bitnet::cpu::choose_isa(parameter("isa"), d.why_unavailable, disabled);
  if (!isa) return;
  // Probes also compute, in their self-test, but in a process of their own.
  const bitnet::cpu::isa_form& computing = bitnet::cpu::permitted(*isa);
  d.author_data = &computing;
  if (copies != "plain") d.copies_code = bitnet::cpu::fives_code(computing);
  d.device = bitnet::cpu::describe_device(*isa, computing);
  d.status = [cpu = std::make_shared<bitnet::cpu::meter>(bitnet::cpu::usable_cpus())](
                 bitnet_device_status& out) { cpu->read(out); };
  d.tuning = {bitnet::cpu::describe_tuning, d.large_pages ? measure<true> : measure<false>,
              bitnet::cpu::adopt_tuning,
              [] { return bitnet::cpu::tuning_is_due(std::time(nullptr)); }};
  bitnet::cpu::add_primitives(*isa, d);
  bitnet::cpu::add_composites(*isa, head_of(*isa), d);
  bitnet::cpu::add_others(*isa, head_of, d);
  if (&computing != isa) bitnet::cpu::withhold_panels(*isa, d);
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::sdk::open_interpreter(host, request, out, err, describe);
}
