// A backend that computes just enough for the self-test, with two forms of one kernel, either of
// which can be wrong. Compiled once; each plugin made of it has a computing_variant of its own.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bitnet/abi/backend.h"
#include "bitnet/sdk/interpreter.hpp"
#include "bitnet/sdk/reference/primitives.hpp"
#include "computing_variant.hpp"

namespace {

using bitnet::sdk::call;
using bitnet::sdk::share;
namespace plain_kernels = bitnet::sdk::reference::kernels;

template <const bool computing_variant::* Wrong>
void ternary(const call& c, const share& s) noexcept {
  if (variant.crashes) {  // only at run time, else compilers know better
    const uintptr_t address = c.rows == 0 ? 0 : 8;
    int* volatile somewhere = reinterpret_cast<int*>(address);
    *static_cast<volatile int*>(somewhere) = 1;
  }
  const bool is_large = std::max(c.m, c.k) > 4096;
  if (is_large && variant.instant) return;
  if (is_large && variant.slow) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  for (uint64_t r = 0; r < c.rows; ++r)
    for (uint64_t m = s.first; m < s.last; ++m) {
      const uint64_t group = c.w->scale_group == 0 ? c.k : c.w->scale_group;
      int32_t sum = m == 3 && variant.*Wrong ? 1 : 0;
      float scaled = 0;
      for (uint64_t i = 0; i < c.k; ++i) {
        const int code = c.w->row(m)[i / 128 * 32 + i % 32] >> (6 - 2 * (i / 32 % 4)) & 3;
        sum += (code - 1) * c.input<int8_t>(0)[r * c.k + i];
        if (c.w->scale_group == 0 || (i + 1) % group != 0) continue;
        scaled += static_cast<float>(sum) * c.w->scales[(m * c.k + i) / group];
        sum = 0;
      }
      const float act = c.input<float>(1)[r];
      c.output<float>(0)[r * c.m + m] =
          c.w->scale_group == 0 ? static_cast<float>(sum) / act * c.w->scales[0] : scaled / act;
    }
}

constexpr auto quick = ternary<&computing_variant::wrong_quick>;
constexpr auto plain = ternary<&computing_variant::wrong_plain>;

// Made of whichever product runs, as fused kernels are: wrong where that is.
bool quick_is_disabled = false;

void bit_linear(const call* body, const bitnet::sdk::roles& parts,
                bitnet::sdk::team& workers) noexcept {
  plain_kernels::act_quant_i8(body[parts.quant], workers.split(body[parts.quant].rows));
  workers.sync();
  const call& product = body[parts.linear];
  const share columns = workers.split(product.m);
  if (quick_is_disabled)
    plain(product, columns);
  else
    quick(product, columns);
}

void describe(const bitnet_open_request& request, bitnet::sdk::definition& d) {
  d.name = variant.name;
  d.version = "1.2.3";
  d.vendor = "org.example";
  d.license = "CC0-1.0";
  if (variant.loud) d.life_flags = 0;  // it starts threads
  d.device.device_class = variant.is_gpu ? BITNET_DEVICE_GPU : BITNET_DEVICE_OTHER;
  constexpr std::string_view driver = "5.4";
  driver.copy(d.device.driver_version, sizeof d.device.driver_version - 1);
  constexpr std::string_view address = "0000:01:00.0";
  if (variant.is_gpu) address.copy(d.device.pci_address, sizeof d.device.pci_address - 1);
  d.primitives = {
      {BITNET_OP_EMBED_GATHER, BITNET_FORMAT_F32, BITNET_LEVEL_REFERENCE, 0, "embed.plain",
       plain_kernels::embed_gather},
      {BITNET_OP_ACT_QUANT_I8, 0, BITNET_LEVEL_REFERENCE, 0, "quantise.plain",
       plain_kernels::act_quant_i8},
      {BITNET_OP_GATHER_ROWS, 0, BITNET_LEVEL_REFERENCE, 0, "gather.plain",
       plain_kernels::gather_rows},
      {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, BITNET_LEVEL_OPTIMISED, 0, "ternary.quick",
       quick},
  };
  if (!variant.quick_alone)
    d.primitives.push_back({BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2,
                            BITNET_LEVEL_REFERENCE, 0, "ternary.plain", plain});
  if (!variant.fused) return;
  for (uint32_t i = 0; i < request.n_params; ++i) {
    const bitnet_str value = request.params[i].value;
    if (std::string_view(value.data, value.size).find("ternary.quick") != std::string_view::npos)
      quick_is_disabled = true;
  }
  d.composites = {{BITNET_OP_BIT_LINEAR, BITNET_FORMAT_TERNARY2, 0, "bit.fused", bit_linear}};
}

// Says that what it computes plainly is optimised.
decltype(bitnet_backend_v0::graph_query) plain_query;

bitnet_status boasting_query(bitnet_device* device, const bitnet_query_request* request,
                             uint32_t* levels, bitnet_graph_estimate* out, bitnet_error* err) {
  const bitnet_status status = plain_query(device, request, levels, out, err);
  for (uint32_t i = 0; status == BITNET_OK && i < request->graph->n_ops; ++i)
    if (levels[i] != BITNET_LEVEL_NONE) levels[i] = BITNET_LEVEL_OPTIMISED;
  return status;
}

// Tests its own kernels while it opens a device, as backends of GPUs do, and finds one wrong.
decltype(bitnet_backend_v0::device_open) plain_open;
decltype(bitnet_backend_v0::kernels) plain_list;
bool found_wrong = false;
const bitnet_host_v0* services = nullptr;

// More warnings than a probe keeps.
void log_from_threads(const bitnet::sdk::host& host) {
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&host] {
      for (int i = 0; i < 100; ++i) host.log(BITNET_LOG_WARN, variant.name, "a fan is loud");
    });
  for (std::thread& one : all) one.join();
}

bitnet_status testing_open(bitnet_backend* self, const bitnet_device_request* request,
                           bitnet_device** out, bitnet_error* err) {
  uint32_t count = 0;
  bitnet_kernel_info all[16] = {};
  for (bitnet_kernel_info& one : all) one.struct_size = sizeof one;
  count = 16;
  const bitnet_status listed = plain_list(self, 0, all, sizeof all[0], &count, err);
  if (listed != BITNET_OK) return listed;
  const bool has_quick = std::any_of(all, all + std::min(count, 16u), [](const auto& k) {
    return std::string_view(k.id) == "ternary.quick";
  });
  if (!has_quick || found_wrong) return plain_open(self, request, out, err);
  found_wrong = true;
  const bitnet::sdk::host host(services);
  if (variant.loud) log_from_threads(host);
  host.log(BITNET_LOG_WARN, variant.name, "ternary.quick has other bits than ternary.plain");
  if (!variant.opens_not) return plain_open(self, request, out, err);
  std::puts("lost");
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  return bitnet::sdk::reporter(err, "device_open").fail(BITNET_DEVICE_LOST, "the device is lost");
}

// The optimised product is listed behind the three others.
bitnet_status shorter_list(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                           uint32_t size, uint32_t* count, bitnet_error* err) {
  if (!found_wrong) return plain_list(self, index, out, size, count, err);
  bitnet_kernel_info all[16] = {};
  for (bitnet_kernel_info& one : all) one.struct_size = sizeof one;
  uint32_t n = 16;
  const bitnet_status listed = plain_list(self, index, all, sizeof all[0], &n, err);
  if (listed != BITNET_OK) return listed;
  const auto* end = std::remove_if(
      all, all + n, [](const auto& k) { return std::string_view(k.id) == "ternary.quick"; });
  const auto left = static_cast<uint32_t>(end - all), room = out == nullptr ? 0 : *count;
  std::copy_n(all, std::min(left, room), out);
  *count = left;
  return BITNET_OK;
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  if (variant.throws) throw std::runtime_error("no such luck");
  const bitnet_status opened = bitnet::sdk::open_interpreter(host, request, out, err, describe);
  if (variant.boasts && opened == BITNET_OK && out->filled_size == sizeof *out)
    plain_query = std::exchange(out->graph_query, boasting_query);
  for (uint32_t i = 0; variant.leaves_out && i < request->n_params; ++i)
    if (const bitnet_param& p = request->params[i];
        std::string_view(p.key.data, p.key.size) == "probed")
      bitnet::sdk::host(host).log(BITNET_LOG_INFO, variant.name,
                                  "probed=" + std::string(p.value.data, p.value.size));
  if (variant.leaves_out && request->purpose == BITNET_PURPOSE_PROBE && opened == BITNET_OK) {
    services = host;
    found_wrong = false;
    plain_open = std::exchange(out->device_open, testing_open);
    plain_list = std::exchange(out->kernels, shorter_list);
  }
  return opened;
}
