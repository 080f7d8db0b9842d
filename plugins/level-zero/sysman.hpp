#pragma once
// A device's current state, from Level Zero's zes* calls. They work after zesInit, or, in loaders
// older than Level Zero 1.5, if ZES_ENABLE_SYSMAN=1 was set before zeInit. Only the user knows that
// it was set, and without it some drivers crash. Without either nothing is reported.

#include <level_zero/zes_api.h>

#include <vector>

#include "bitnet/abi/info.h"
#include "device_facts.hpp"
#include "library.hpp"

namespace bitnet::level_zero {

#define BITNET_LEVEL_ZERO_SYSMAN_CALLS(X) \
  X(zesDeviceEnumMemoryModules)           \
  X(zesMemoryGetState)                    \
  X(zesDeviceEnumTemperatureSensors)      \
  X(zesTemperatureGetProperties)          \
  X(zesTemperatureGetState)               \
  X(zesDeviceEnumFrequencyDomains)        \
  X(zesFrequencyGetProperties)            \
  X(zesFrequencyGetState)

class sysman {
 public:
  // `enabled`: the user states that ZES_ENABLE_SYSMAN=1 was set.
  sysman(const library& calls, bool enabled);
  // Fills the members that the driver reports and sets their bits in out.known.
  void status(const device_facts& device, bitnet_device_status& out) const;

 private:
  struct row {
    ze_device_uuid_t uuid;
    zes_device_handle_t handle;
  };
  bool find_devices(void* opened);
  zes_device_handle_t handle_of(const device_facts& device) const noexcept;
  void memory(zes_device_handle_t device, bitnet_device_status& out) const;
  void temperature(zes_device_handle_t device, bitnet_device_status& out) const;
  void clocks(zes_device_handle_t device, bitnet_device_status& out) const;

// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_LEVEL_ZERO_SYSMAN_MEMBER(name) decltype(&::name) name##_ = nullptr;
  BITNET_LEVEL_ZERO_SYSMAN_CALLS(BITNET_LEVEL_ZERO_SYSMAN_MEMBER)
#undef BITNET_LEVEL_ZERO_SYSMAN_MEMBER
  bool ready_ = false;
  bool shares_handles_ = false;  // zes* calls take the compute handles: without zesInit
  std::vector<row> devices_;
};

}  // namespace bitnet::level_zero
