// Where the loader finds the calls. A table that the stand-in fills in nothing of is answered, too:
// the loader wants all of them.

#include <level_zero/zet_ddi.h>

#include "calls.hpp"

// NOLINTBEGIN(bugprone-macro-parentheses): a name and a type
#define BITNET_STAND_IN_TABLE(name, table)                                           \
  extern "C" ZE_DLLEXPORT ze_result_t ZE_APICALL name(ze_api_version_t, table* to) { \
    if (!to) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;                            \
    stand_in::fill(*to);                                                             \
    return ZE_RESULT_SUCCESS;                                                        \
  }
#define BITNET_STAND_IN_NO_TABLE(name, table)                                     \
  extern "C" ZE_DLLEXPORT ze_result_t ZE_APICALL name(ze_api_version_t, table*) { \
    return ZE_RESULT_SUCCESS;                                                     \
  }

// NOLINTEND(bugprone-macro-parentheses)

BITNET_STAND_IN_TABLE(zeGetGlobalProcAddrTable, ze_global_dditable_t)
BITNET_STAND_IN_TABLE(zeGetDriverProcAddrTable, ze_driver_dditable_t)
BITNET_STAND_IN_TABLE(zeGetDeviceProcAddrTable, ze_device_dditable_t)
BITNET_STAND_IN_TABLE(zeGetContextProcAddrTable, ze_context_dditable_t)
BITNET_STAND_IN_TABLE(zeGetMemProcAddrTable, ze_mem_dditable_t)
BITNET_STAND_IN_TABLE(zeGetCommandListProcAddrTable, ze_command_list_dditable_t)
BITNET_STAND_IN_TABLE(zeGetEventPoolProcAddrTable, ze_event_pool_dditable_t)
BITNET_STAND_IN_TABLE(zeGetEventProcAddrTable, ze_event_dditable_t)
BITNET_STAND_IN_TABLE(zeGetModuleProcAddrTable, ze_module_dditable_t)
BITNET_STAND_IN_TABLE(zeGetModuleBuildLogProcAddrTable, ze_module_build_log_dditable_t)
BITNET_STAND_IN_TABLE(zeGetKernelProcAddrTable, ze_kernel_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetDeviceExpProcAddrTable, ze_device_exp_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetCommandQueueProcAddrTable, ze_command_queue_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetEventExpProcAddrTable, ze_event_exp_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetFabricEdgeExpProcAddrTable, ze_fabric_edge_exp_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetFabricVertexExpProcAddrTable, ze_fabric_vertex_exp_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetFenceProcAddrTable, ze_fence_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetImageProcAddrTable, ze_image_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetImageExpProcAddrTable, ze_image_exp_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetKernelExpProcAddrTable, ze_kernel_exp_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetPhysicalMemProcAddrTable, ze_physical_mem_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetSamplerProcAddrTable, ze_sampler_dditable_t)
BITNET_STAND_IN_NO_TABLE(zeGetVirtualMemProcAddrTable, ze_virtual_mem_dditable_t)

BITNET_STAND_IN_TABLE(zesGetDeviceProcAddrTable, zes_device_dditable_t)
BITNET_STAND_IN_TABLE(zesGetMemoryProcAddrTable, zes_memory_dditable_t)
BITNET_STAND_IN_TABLE(zesGetTemperatureProcAddrTable, zes_temperature_dditable_t)
BITNET_STAND_IN_TABLE(zesGetFrequencyProcAddrTable, zes_frequency_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetDriverProcAddrTable, zes_driver_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetDiagnosticsProcAddrTable, zes_diagnostics_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetEngineProcAddrTable, zes_engine_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetFabricPortProcAddrTable, zes_fabric_port_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetFanProcAddrTable, zes_fan_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetFirmwareProcAddrTable, zes_firmware_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetLedProcAddrTable, zes_led_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetPerformanceFactorProcAddrTable, zes_performance_factor_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetPowerProcAddrTable, zes_power_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetPsuProcAddrTable, zes_psu_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetRasProcAddrTable, zes_ras_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetSchedulerProcAddrTable, zes_scheduler_dditable_t)
BITNET_STAND_IN_NO_TABLE(zesGetStandbyProcAddrTable, zes_standby_dditable_t)

BITNET_STAND_IN_NO_TABLE(zetGetCommandListProcAddrTable, zet_command_list_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetContextProcAddrTable, zet_context_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetDebugProcAddrTable, zet_debug_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetDeviceProcAddrTable, zet_device_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetKernelProcAddrTable, zet_kernel_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetMetricGroupExpProcAddrTable, zet_metric_group_exp_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetMetricGroupProcAddrTable, zet_metric_group_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetMetricProcAddrTable, zet_metric_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetMetricQueryPoolProcAddrTable, zet_metric_query_pool_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetMetricQueryProcAddrTable, zet_metric_query_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetMetricStreamerProcAddrTable, zet_metric_streamer_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetModuleProcAddrTable, zet_module_dditable_t)
BITNET_STAND_IN_NO_TABLE(zetGetTracerExpProcAddrTable, zet_tracer_exp_dditable_t)
