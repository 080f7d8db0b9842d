#pragma once
// The calls that the stand-in implements; tables.cpp puts them where the loader asks for them.

#include <level_zero/ze_ddi.h>
#include <level_zero/zes_ddi.h>

namespace stand_in {

void fill(ze_global_dditable_t& to);
void fill(ze_driver_dditable_t& to);
void fill(ze_device_dditable_t& to);
void fill(ze_context_dditable_t& to);
void fill(ze_mem_dditable_t& to);
void fill(ze_command_list_dditable_t& to);
void fill(ze_event_pool_dditable_t& to);
void fill(ze_event_dditable_t& to);
void fill(ze_module_dditable_t& to);
void fill(ze_module_build_log_dditable_t& to);
void fill(ze_kernel_dditable_t& to);
void fill(zes_device_dditable_t& to);
void fill(zes_memory_dditable_t& to);
void fill(zes_temperature_dditable_t& to);
void fill(zes_frequency_dditable_t& to);

}  // namespace stand_in
