#include "memory.hpp"

#include <algorithm>
#include <cstring>

namespace bitnet::level_zero {

device_buffer::~device_buffer() {
  if (address_) context_.calls.zeMemFree(context_.handle, address_);
}

bitnet_status device_buffer::create(gpu::memory_place where, ze_command_list_handle_t transfers,
                                    const sdk::reporter& report) {
  const gpu::facts& about = context_.facts.about;
  const gpu::capabilities& can = about.capabilities;
  if (bytes_ > can.max_allocation_bytes)
    return report.fail(
        BITNET_OUT_OF_DEVICE_MEMORY,
        "%s: a buffer of %llu bytes, its driver allows %s; use a smaller model, a shorter context "
        "or another device",
        about.name.c_str(), static_cast<unsigned long long>(bytes_),
        gpu::limit_text(can.max_allocation_bytes, can.max_allocation_name).c_str());
  const uint64_t bytes = std::max<uint64_t>((bytes_ + 3) / 4 * 4, 4);
  constexpr size_t alignment = 64;  // cache lines
  const library& calls = context_.calls;
  is_host_ = where == gpu::memory_place::host;
  if (is_host_) {
    ze_host_mem_alloc_desc_t wanted{};
    wanted.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
    const ze_result_t made =
        calls.zeMemAllocHost(context_.handle, &wanted, bytes, alignment, &address_);
    if (made != ZE_RESULT_SUCCESS) {
      address_ = nullptr;
      return context_.fail("zeMemAllocHost", made, report);
    }
    std::memset(address_, 0, bytes);
    return BITNET_OK;
  }
  ze_device_mem_alloc_desc_t wanted{};
  wanted.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
  const ze_result_t made = calls.zeMemAllocDevice(context_.handle, &wanted, bytes, alignment,
                                                  context_.facts.handle, &address_);
  if (made != ZE_RESULT_SUCCESS) {
    address_ = nullptr;
    return context_.fail("zeMemAllocDevice", made, report);
  }
  const uint8_t zero = 0;
  const ze_result_t filled = calls.zeCommandListAppendMemoryFill(
      transfers, address_, &zero, sizeof zero, bytes, nullptr, 0, nullptr);
  if (filled == ZE_RESULT_SUCCESS) return BITNET_OK;
  return context_.fail("zeCommandListAppendMemoryFill", filled, report);
}

}  // namespace bitnet::level_zero
