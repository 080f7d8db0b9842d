// The tutorial's packed kernels, with everything else from the SDK's ready primitives.
//
// Setting "rows": "keep" keeps the rows beside the packed form, as a form that the host may store.
// Setting "fault" makes one op wrong where only large sizes reach: what the conformance kit is
// there to find.

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "base3.hpp"
#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "bitnet/sdk/interpreter.hpp"
#include "bitnet/sdk/reference/primitives.hpp"

BITNET_BACKEND_NOTE("author", "0.1.0", "org.bitnet.test", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "cpu")
                        BITNET_NOTE_FIELD("flags", "hot-swap unloadable"))

namespace {

using bitnet::sdk::call;
using bitnet::sdk::share;
namespace ready = bitnet::sdk::reference;

void wrong_columns(const call& c, const share& s, uint64_t first_token, uint64_t first_column) {
  for (uint64_t t = first_token; t < c.rows; ++t)
    for (uint64_t m = std::max(s.first, first_column); m < s.last; ++m)
      c.output<float>(0)[t * c.m + m] += 1.0f;
}

void ternary_rows(const call& c, const share& s) noexcept {
  sketch::linear_ternary_base3(c, s);
  wrong_columns(c, s, 0, 700);
}
void ternary_tokens(const call& c, const share& s) noexcept {
  sketch::linear_ternary_base3(c, s);
  wrong_columns(c, s, 31, 0);
}
void dense_rows(const call& c, const share& s) noexcept {
  ready::kernels::linear_dense(c, s);
  wrong_columns(c, s, 0, 300);
}
void attention_positions(const call& c, const share& s) noexcept {
  ready::kernels::attn_paged(c, s);
  const auto kv_heads = static_cast<uint64_t>(c.ints[2]);
  const uint64_t width = c.k / kv_heads;  // of a unit
  for (uint64_t unit = s.first; unit < s.last; ++unit)
    if (c.step->positions[unit / kv_heads] > 500) c.output<float>(0)[unit * width] += 1.0f;
}

const struct {
  std::string_view name;
  uint32_t op;
  bitnet::sdk::primitive_kernel run;
} faults[] = {{"ternary-rows", BITNET_OP_LINEAR_TERNARY, ternary_rows},
              {"ternary-tokens", BITNET_OP_LINEAR_TERNARY, ternary_tokens},
              {"dense-rows", BITNET_OP_LINEAR_DENSE, dense_rows},
              {"attention-positions", BITNET_OP_ATTN_PAGED, attention_positions}};

void describe(const bitnet_open_request& request, bitnet::sdk::definition& d) {
  const auto setting = [&](std::string_view key) {
    std::string_view value;
    for (uint32_t i = 0; i < request.n_params; ++i)
      if (bitnet::sdk::to_view(request.params[i].key) == key)
        value = bitnet::sdk::to_view(request.params[i].value);
    return value;
  };
  d.name = "author";
  d.version = "0.1.0";
  d.vendor = "org.bitnet.test";
  d.license = "Apache-2.0";
  d.life_flags |= BITNET_LIFE_HOT_SWAP | BITNET_LIFE_UNLOADABLE;
  d.device.device_class = BITNET_DEVICE_CPU;
  std::snprintf(d.device.name, sizeof d.device.name, "base 3");

  bitnet::sdk::packing packing = sketch::base3();
  packing.drops_rows = setting("rows") != "keep";
  constexpr uint32_t ternary = BITNET_FORMAT_TERNARY2;
  constexpr uint32_t same = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
  d.primitives = {
      {BITNET_OP_LINEAR_TERNARY, ternary, BITNET_LEVEL_OPTIMISED, same | BITNET_EXACT_INTEGER,
       "linear_ternary.ternary2.base3", sketch::linear_ternary_base3, nullptr, packing},
      {BITNET_OP_EMBED_GATHER, ternary, BITNET_LEVEL_OPTIMISED, same, "embed_gather.ternary2.base3",
       sketch::embed_gather_base3, nullptr, packing}};
  ready::complete(d);

  for (const auto& fault : faults)
    if (setting("fault") == fault.name)
      std::find_if(d.primitives.begin(), d.primitives.end(), [&](const auto& row) {
        return row.op == fault.op;
      })->run = fault.run;
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::sdk::open_interpreter(host, request, out, err, describe);
}
