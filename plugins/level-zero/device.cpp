#include "device.hpp"

#include <algorithm>
#include <cstring>

#include "memory.hpp"
#include "queue.hpp"
#include "recording.hpp"

namespace bitnet::level_zero {

device::~device() {
  if (transfers_) context_.calls.zeCommandListDestroy(transfers_);
}

bitnet_status device::open(const sdk::reporter& report) {
  if (bitnet_status s = context_.open(report); sdk::failed(s)) return s;
  return context_.make_list(true, transfers_, report);
}

bitnet_status device::status(bitnet_device_status& out, const sdk::reporter&) const {
  sysman_.status(context_.facts, out);
  return BITNET_OK;
}

bitnet_status device::allocate(uint64_t bytes, gpu::memory_place where,
                               std::unique_ptr<gpu::buffer>& out, const sdk::reporter& report) {
  auto made = std::make_unique<device_buffer>(context_, std::max<uint64_t>(bytes, 4));
  if (bitnet_status s = made->create(where, transfers_, report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::copy(void* to, const void* from, uint64_t bytes,
                           const sdk::reporter& report) const {
  const ze_result_t r = context_.calls.zeCommandListAppendMemoryCopy(transfers_, to, from, bytes,
                                                                     nullptr, 0, nullptr);
  if (r == ZE_RESULT_SUCCESS) return BITNET_OK;
  return context_.fail("zeCommandListAppendMemoryCopy", r, report);
}

bitnet_status device::upload(gpu::buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                             const sdk::reporter& report) {
  if (bytes == 0) return BITNET_OK;
  if (!to.mapped()) return copy(address_of(to) + offset, data, bytes, report);
  std::memcpy(address_of(to) + offset, data, bytes);
  return BITNET_OK;
}

bitnet_status device::download(const gpu::buffer& from, uint64_t offset, void* data, uint64_t bytes,
                               const sdk::reporter& report) {
  if (bytes == 0) return BITNET_OK;
  if (!from.mapped()) return copy(data, address_of(from) + offset, bytes, report);
  std::memcpy(data, address_of(from) + offset, bytes);
  return BITNET_OK;
}

bitnet_status device::make_kernel(const gpu::kernel_spec& spec, std::unique_ptr<gpu::kernel>& out,
                                  const sdk::reporter& report) {
  auto made = std::make_unique<compiled_kernel>(context_, spec);
  if (bitnet_status s = made->compile(report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::record(std::span<const gpu::command> commands, bool timed,
                             std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) {
  auto made = std::make_unique<recording>(context_, timed ? &clocks_ : nullptr);
  for (const gpu::command& one : commands)
    if (bitnet_status s = made->add(one, report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) {
  auto made = std::make_unique<queue>(context_);
  if (bitnet_status s = made->open(report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

}  // namespace bitnet::level_zero
