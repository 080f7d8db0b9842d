#include "sysman.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace bitnet::level_zero {
namespace {

// Handles from a call that counts them first; none if it fails.
template <class Handle, class Ask>
std::vector<Handle> sysman_handles(Ask&& ask) {
  uint32_t n = 0;
  if (ask(&n, static_cast<Handle*>(nullptr)) != ZE_RESULT_SUCCESS) return {};
  std::vector<Handle> out(std::min(n, 1024u));
  n = static_cast<uint32_t>(out.size());
  if (n != 0 && ask(&n, out.data()) != ZE_RESULT_SUCCESS) n = 0;
  out.resize(std::min<size_t>(n, out.size()));
  return out;
}

template <class Function>
Function sysman_call(void* opened, const char* name) {
  return reinterpret_cast<Function>(dlsym(opened, name));
}

// Converts a driver's number to thousandths of its unit. A negative number means unknown.
bool in_thousandths(double value, double most, double& out) {
  if (!(value >= 0) || value > most) return false;
  out = std::round(value * 1000);
  return true;
}

}  // namespace

sysman::sysman(const library& calls, bool enabled) {
  bool complete = true;
#define BITNET_LEVEL_ZERO_SYSMAN_FIND(name)                      \
  name##_ = sysman_call<decltype(&::name)>(calls.opened, #name); \
  complete = complete && name##_;
  BITNET_LEVEL_ZERO_SYSMAN_CALLS(BITNET_LEVEL_ZERO_SYSMAN_FIND)
#undef BITNET_LEVEL_ZERO_SYSMAN_FIND
  if (!complete) return;
  shares_handles_ = enabled;
  ready_ = enabled || find_devices(calls.opened);
}

// Uses zesInit, which headers older than Level Zero 1.5 do not declare.
bool sysman::find_devices(void* opened) {
  const auto init = sysman_call<ze_result_t (*)(uint32_t)>(opened, "zesInit");
  const auto drivers =
      sysman_call<ze_result_t (*)(uint32_t*, zes_driver_handle_t*)>(opened, "zesDriverGet");
  const auto devices =
      sysman_call<ze_result_t (*)(zes_driver_handle_t, uint32_t*, zes_device_handle_t*)>(
          opened, "zesDeviceGet");
  const auto about =
      sysman_call<decltype(&::zesDeviceGetProperties)>(opened, "zesDeviceGetProperties");
  if (!init || !drivers || !devices || !about || init(0) != ZE_RESULT_SUCCESS) return false;
  for (zes_driver_handle_t driver : sysman_handles<zes_driver_handle_t>(drivers))
    for (zes_device_handle_t device : sysman_handles<zes_device_handle_t>(
             [&](uint32_t* n, zes_device_handle_t* to) { return devices(driver, n, to); })) {
      zes_device_properties_t is{};
      is.stype = ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES;
      is.core.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
      if (about(device, &is) == ZE_RESULT_SUCCESS) devices_.push_back({is.core.uuid, device});
    }
  return !devices_.empty();
}

zes_device_handle_t sysman::handle_of(const device_facts& device) const noexcept {
  if (shares_handles_) return reinterpret_cast<zes_device_handle_t>(device.handle);
  for (const row& r : devices_)
    if (std::memcmp(r.uuid.id, device.uuid.id, sizeof r.uuid.id) == 0) return r.handle;
  return nullptr;
}

void sysman::memory(zes_device_handle_t device, bitnet_device_status& out) const {
  uint64_t free = 0, total = 0;
  bool good = true, known = false;
  for (zes_mem_handle_t one :
       sysman_handles<zes_mem_handle_t>([&](uint32_t* n, zes_mem_handle_t* to) {
         return zesDeviceEnumMemoryModules_(device, n, to);
       })) {
    zes_mem_state_t now{};
    now.stype = ZES_STRUCTURE_TYPE_MEM_STATE;
    if (zesMemoryGetState_(one, &now) != ZE_RESULT_SUCCESS) continue;
    free += std::min(now.free, now.size);
    total += now.size;
    known = known || now.health != ZES_MEM_HEALTH_UNKNOWN;
    good = good && (now.health == ZES_MEM_HEALTH_UNKNOWN || now.health == ZES_MEM_HEALTH_OK);
  }
  if (total != 0) {
    out.known |= BITNET_STATUS_MEMORY;
    out.memory_total_bytes = total;
    out.memory_free_bytes = free;
  }
  if (known) {
    out.known |= BITNET_STATUS_HEALTH;
    out.health = good ? BITNET_HEALTH_GOOD : BITNET_HEALTH_DEGRADED;
  }
}

// The temperature of the GPU, or else the highest one of the device.
void sysman::temperature(zes_device_handle_t device, bitnet_device_status& out) const {
  for (const zes_temp_sensors_t wanted : {ZES_TEMP_SENSORS_GPU, ZES_TEMP_SENSORS_GLOBAL})
    for (zes_temp_handle_t one :
         sysman_handles<zes_temp_handle_t>([&](uint32_t* n, zes_temp_handle_t* to) {
           return zesDeviceEnumTemperatureSensors_(device, n, to);
         })) {
      zes_temp_properties_t is{};
      is.stype = ZES_STRUCTURE_TYPE_TEMP_PROPERTIES;
      double celsius = -1, scaled = 0;
      if (zesTemperatureGetProperties_(one, &is) != ZE_RESULT_SUCCESS || is.type != wanted ||
          zesTemperatureGetState_(one, &celsius) != ZE_RESULT_SUCCESS ||
          !in_thousandths(celsius, 1000, scaled))
        continue;
      out.known |= BITNET_STATUS_TEMPERATURE;
      out.temperature_millicelsius = static_cast<int32_t>(scaled);
      return;
    }
}

void sysman::clocks(zes_device_handle_t device, bitnet_device_status& out) const {
  constexpr zes_freq_throttle_reason_flags_t of_power =
      ZES_FREQ_THROTTLE_REASON_FLAG_AVE_PWR_CAP | ZES_FREQ_THROTTLE_REASON_FLAG_BURST_PWR_CAP |
      ZES_FREQ_THROTTLE_REASON_FLAG_CURRENT_LIMIT | ZES_FREQ_THROTTLE_REASON_FLAG_PSU_ALERT;
  constexpr zes_freq_throttle_reason_flags_t of_heat = ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT;
  for (zes_freq_handle_t one :
       sysman_handles<zes_freq_handle_t>([&](uint32_t* n, zes_freq_handle_t* to) {
         return zesDeviceEnumFrequencyDomains_(device, n, to);
       })) {
    zes_freq_properties_t is{};
    is.stype = ZES_STRUCTURE_TYPE_FREQ_PROPERTIES;
    zes_freq_state_t now{};
    now.stype = ZES_STRUCTURE_TYPE_FREQ_STATE;
    double khz = 0;
    if (zesFrequencyGetProperties_(one, &is) != ZE_RESULT_SUCCESS ||
        zesFrequencyGetState_(one, &now) != ZE_RESULT_SUCCESS)
      continue;
    const bool known = in_thousandths(now.actual, 1e6, khz);
    if (known && is.type == ZES_FREQ_DOMAIN_MEMORY) {
      out.known |= BITNET_STATUS_MEMORY_CLOCK;
      out.memory_clock_khz = static_cast<uint32_t>(khz);
    }
    if (is.type != ZES_FREQ_DOMAIN_GPU) continue;
    if (known) {
      out.known |= BITNET_STATUS_CLOCK;
      out.clock_khz = static_cast<uint32_t>(khz);
    }
    const zes_freq_throttle_reason_flags_t why = now.throttleReasons;
    out.known |= BITNET_STATUS_THROTTLED;
    if (why & of_power) out.throttled |= BITNET_THROTTLED_POWER;
    if (why & of_heat) out.throttled |= BITNET_THROTTLED_HEAT;
    if (why & ~(of_power | of_heat)) out.throttled |= BITNET_THROTTLED_OTHER;
  }
}

void sysman::status(const device_facts& device, bitnet_device_status& out) const {
  if (!ready_) return;
  zes_device_handle_t handle = handle_of(device);
  if (!handle) return;
  memory(handle, out);
  temperature(handle, out);
  clocks(handle, out);
}

}  // namespace bitnet::level_zero
