#pragma once
// Facts that OpenCL reports about its devices, and which of them this backend can use.

#include <cstdint>
#include <string>
#include <vector>

#include "bitnet/abi/info.h"
#include "library.hpp"

namespace bitnet::opencl {

// Facts that decide which form of a kernel is built. OpenCL 1.2 promises none of them.
struct device_traits {
  bool doubles = false;         // cl_khr_fp64
  bool exact_division = false;  // / and sqrt of float are rounded correctly
  bool dot_product = false;     // cl_khr_integer_dot_product of packed int8, accelerated
  bool runs_on_cores = false;   // CL_DEVICE_TYPE_CPU: the items of a group run one after the other
  uint32_t max_group_items = 1;
  uint32_t local_bytes = 0;
  std::string prelude;  // OpenCL C before each program; tests add functions that a driver lacks
};

struct device_facts {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  bitnet_device_info info{};
  bool reports_free_memory = false;  // cl_amd_device_attribute_query
  device_traits traits;
  std::string platform_name;
  std::string driver;   // platform, version and driver; differs between drivers
  std::string refusal;  // not empty: why this device cannot be used
};

// All devices of all platforms, in the loader's order. Platforms without devices are normal. If no
// device is usable, `why` says what the user can do.
std::vector<device_facts> list_devices(const library& cl, std::string& why);

// Bytes now free on a device; false if its driver does not report them.
bool free_memory_of(const library& cl, const device_facts& device, uint64_t& bytes);

// True if the space-separated list names `extension`.
bool has_extension(const std::string& list, const char* extension);

}  // namespace bitnet::opencl
