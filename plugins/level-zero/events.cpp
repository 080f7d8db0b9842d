#include "events.hpp"

namespace bitnet::level_zero {
namespace {
constexpr uint32_t events_of_pool = 64;
}  // namespace

events::~events() {
  for (ze_event_handle_t event : all_) context_.calls.zeEventDestroy(event);
  for (ze_event_pool_handle_t pool : pools_) context_.calls.zeEventPoolDestroy(pool);
}

bitnet_status events::grow(const sdk::reporter& report) {
  ze_event_pool_desc_t wanted{};
  wanted.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
  wanted.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE |
                 (timed_ ? ze_event_pool_flags_t{ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP} : 0u);
  wanted.count = events_of_pool;
  ze_device_handle_t device = context_.facts.handle;
  ze_event_pool_handle_t pool = nullptr;
  all_.reserve(all_.size() + events_of_pool);
  free_.reserve(all_.size() + events_of_pool);  // so that returning an event needs no memory
  pools_.reserve(pools_.size() + 1);
  const library& calls = context_.calls;
  if (const ze_result_t r = calls.zeEventPoolCreate(context_.handle, &wanted, 1, &device, &pool);
      r != ZE_RESULT_SUCCESS)
    return context_.fail("zeEventPoolCreate", r, report);
  pools_.push_back(pool);
  for (uint32_t i = 0; i < events_of_pool; ++i) {
    ze_event_desc_t one{};
    one.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
    one.index = i;
    one.signal = ZE_EVENT_SCOPE_FLAG_HOST;
    one.wait = ZE_EVENT_SCOPE_FLAG_HOST;
    ze_event_handle_t event = nullptr;
    if (const ze_result_t r = calls.zeEventCreate(pool, &one, &event); r != ZE_RESULT_SUCCESS)
      return context_.fail("zeEventCreate", r, report);
    all_.push_back(event);
    free_.push_back(event);
  }
  return BITNET_OK;
}

bitnet_status events::take(ze_event_handle_t& out, const sdk::reporter& report) {
  const std::scoped_lock held(lock_);
  if (free_.empty())
    if (bitnet_status s = grow(report); sdk::failed(s)) return s;
  if (const ze_result_t r = context_.calls.zeEventHostReset(free_.back()); r != ZE_RESULT_SUCCESS)
    return context_.fail("zeEventHostReset", r, report);
  out = free_.back();
  free_.pop_back();
  return BITNET_OK;
}

void events::give(ze_event_handle_t event) noexcept {
  const std::scoped_lock held(lock_);
  free_.push_back(event);
}

}  // namespace bitnet::level_zero
