// What the stand-in says of itself and its devices, and what they are doing.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "calls.hpp"
#include "objects.hpp"

namespace stand_in {
namespace {

char the_driver, the_devices[16], the_sensor, the_domain, the_module;

template <class Handle>
Handle driver_handle() {
  return reinterpret_cast<Handle>(&the_driver);
}

uint32_t index_of(const void* device) {
  const auto* const at = static_cast<const char*>(device);
  if (at < the_devices || at >= the_devices + wanted().devices)
    complain("a device is none of ours");
  return static_cast<uint32_t>(at - the_devices);
}

// Answers a call that counts first.
template <class Out, class Make>
ze_result_t listed(uint32_t* count, Out* out, uint32_t have, Make&& make) {
  if (!count) complain("a list is asked for without a count");
  if (*count == 0 || !out) {
    *count = have;
    return ZE_RESULT_SUCCESS;
  }
  *count = std::min(*count, have);
  for (uint32_t i = 0; i < *count; ++i) make(out[i], i);
  return ZE_RESULT_SUCCESS;
}

void check_type(ze_structure_type_t got, ze_structure_type_t want) {
  if (got != want) complain("a struct has the stype " + std::to_string(got));
}

ze_result_t ZE_APICALL init(ze_init_flags_t) {
  BITNET_STAND_IN_CALL;
  return static_cast<ze_result_t>(wanted().init);
}

ze_result_t ZE_APICALL get_drivers(uint32_t* count, ze_driver_handle_t* out) {
  BITNET_STAND_IN_CALL;
  return listed(count, out, 1,
                [](ze_driver_handle_t& to, uint32_t) { to = driver_handle<ze_driver_handle_t>(); });
}

ze_result_t ZE_APICALL api_version(ze_driver_handle_t, ze_api_version_t* out) {
  *out = ZE_API_VERSION_CURRENT;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL driver_properties(ze_driver_handle_t driver, ze_driver_properties_t* out) {
  BITNET_STAND_IN_CALL;
  if (driver != driver_handle<ze_driver_handle_t>()) complain("a driver is not ours");
  check_type(out->stype, ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES);
  out->driverVersion = 1u << 24 | 2u << 16 | 3456;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL get_devices(ze_driver_handle_t, uint32_t* count, ze_device_handle_t* out) {
  BITNET_STAND_IN_CALL;
  return listed(count, out, std::min(wanted().devices, 16u),
                [](ze_device_handle_t& to, uint32_t i) {
                  to = reinterpret_cast<ze_device_handle_t>(&the_devices[i]);
                });
}

ze_result_t ZE_APICALL device_properties(ze_device_handle_t device, ze_device_properties_t* out) {
  BITNET_STAND_IN_CALL;
  const uint32_t index = index_of(device);
  check_type(out->stype, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES);
  out->type = static_cast<ze_device_type_t>(wanted().type);
  out->vendorId = 0x8086;
  out->deviceId = 0x56a0;
  out->maxMemAllocSize = wanted().memory << 19;  // half of it
  out->numEUsPerSubslice = 8;
  out->numSubslicesPerSlice = 4;
  out->numSlices = 2;
  out->timerResolution = 1;
  out->timestampValidBits = out->kernelTimestampValidBits = 32;
  std::memset(out->uuid.id, 0, sizeof out->uuid.id);
  out->uuid.id[0] = 0x11;
  out->uuid.id[15] = static_cast<uint8_t>(index);
  std::snprintf(out->name, sizeof out->name, "stand-in %u (no GPU)", index);
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL compute_properties(ze_device_handle_t device,
                                          ze_device_compute_properties_t* out) {
  BITNET_STAND_IN_CALL;
  index_of(device);
  check_type(out->stype, ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES);
  out->maxTotalGroupSize = out->maxGroupSizeX = wanted().threads;
  out->maxGroupSizeY = out->maxGroupSizeZ = 1;
  out->maxGroupCountX = out->maxGroupCountY = out->maxGroupCountZ = UINT32_MAX;
  out->maxSharedLocalMemory = wanted().shared;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL module_properties(ze_device_handle_t device,
                                         ze_device_module_properties_t* out) {
  BITNET_STAND_IN_CALL;
  index_of(device);
  check_type(out->stype, ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES);
  out->spirvVersionSupported = wanted().spirv;
  out->fp32flags = ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST | ZE_DEVICE_FP_FLAG_INF_NAN;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL memory_properties(ze_device_handle_t device, uint32_t* count,
                                         ze_device_memory_properties_t* out) {
  BITNET_STAND_IN_CALL;
  index_of(device);
  return listed(count, out, 1, [](ze_device_memory_properties_t& to, uint32_t) {
    check_type(to.stype, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES);
    to.totalSize = wanted().memory << 20;
  });
}

// The first group copies only.
ze_result_t ZE_APICALL queue_properties(ze_device_handle_t device, uint32_t* count,
                                        ze_command_queue_group_properties_t* out) {
  BITNET_STAND_IN_CALL;
  index_of(device);
  return listed(count, out, 2, [](ze_command_queue_group_properties_t& to, uint32_t i) {
    check_type(to.stype, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES);
    to.flags = i == 0 ? ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY
                      : ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
    to.numQueues = 1;
  });
}

ze_result_t ZE_APICALL pci(ze_device_handle_t device, ze_pci_ext_properties_t* out) {
  BITNET_STAND_IN_CALL;
  check_type(out->stype, ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES);
  out->address = {0, 3 + index_of(device), 0, 0};
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL memory_modules(zes_device_handle_t device, uint32_t* count,
                                      zes_mem_handle_t* out) {
  BITNET_STAND_IN_CALL;
  index_of(device);
  return listed(count, out, 1, [](zes_mem_handle_t& to, uint32_t) {
    to = reinterpret_cast<zes_mem_handle_t>(&the_module);
  });
}

ze_result_t ZE_APICALL memory_state(zes_mem_handle_t, zes_mem_state_t* out) {
  BITNET_STAND_IN_CALL;
  out->size = wanted().memory << 20;
  out->free = out->size / 4;
  out->health = ZES_MEM_HEALTH_OK;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL sensors(zes_device_handle_t device, uint32_t* count,
                               zes_temp_handle_t* out) {
  BITNET_STAND_IN_CALL;
  index_of(device);
  return listed(count, out, 1, [](zes_temp_handle_t& to, uint32_t) {
    to = reinterpret_cast<zes_temp_handle_t>(&the_sensor);
  });
}

ze_result_t ZE_APICALL sensor_properties(zes_temp_handle_t, zes_temp_properties_t* out) {
  BITNET_STAND_IN_CALL;
  out->type = ZES_TEMP_SENSORS_GPU;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL sensor_state(zes_temp_handle_t, double* out) {
  BITNET_STAND_IN_CALL;
  *out = 61.5;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL domains(zes_device_handle_t device, uint32_t* count,
                               zes_freq_handle_t* out) {
  BITNET_STAND_IN_CALL;
  index_of(device);
  return listed(count, out, 1, [](zes_freq_handle_t& to, uint32_t) {
    to = reinterpret_cast<zes_freq_handle_t>(&the_domain);
  });
}

ze_result_t ZE_APICALL domain_properties(zes_freq_handle_t, zes_freq_properties_t* out) {
  BITNET_STAND_IN_CALL;
  out->type = ZES_FREQ_DOMAIN_GPU;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL domain_state(zes_freq_handle_t, zes_freq_state_t* out) {
  BITNET_STAND_IN_CALL;
  out->actual = 2100;
  out->throttleReasons = ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT;
  return ZE_RESULT_SUCCESS;
}

}  // namespace

void fill(ze_global_dditable_t& to) {
  to.pfnInit = init;
}
void fill(ze_driver_dditable_t& to) {
  to.pfnGet = get_drivers;
  to.pfnGetApiVersion = api_version;
  to.pfnGetProperties = driver_properties;
}
void fill(ze_device_dditable_t& to) {
  to.pfnGet = get_devices;
  to.pfnGetProperties = device_properties;
  to.pfnGetComputeProperties = compute_properties;
  to.pfnGetModuleProperties = module_properties;
  to.pfnGetMemoryProperties = memory_properties;
  to.pfnGetCommandQueueGroupProperties = queue_properties;
  to.pfnPciGetPropertiesExt = pci;
}
void fill(zes_device_dditable_t& to) {
  to.pfnEnumMemoryModules = memory_modules;
  to.pfnEnumTemperatureSensors = sensors;
  to.pfnEnumFrequencyDomains = domains;
}
void fill(zes_memory_dditable_t& to) {
  to.pfnGetState = memory_state;
}
void fill(zes_temperature_dditable_t& to) {
  to.pfnGetProperties = sensor_properties;
  to.pfnGetState = sensor_state;
}
void fill(zes_frequency_dditable_t& to) {
  to.pfnGetProperties = domain_properties;
  to.pfnGetState = domain_state;
}

}  // namespace stand_in
