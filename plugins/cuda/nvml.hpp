#pragma once
// State of a device as NVIDIA's management library (NVML) reports it, if NVML is installed. A
// toolkit that has only the compiler lacks nvml.h, so this backend declares the calls that it uses.

#include <cstdint>
#include <memory>
#include <string>

#include "bitnet/abi/info.h"

namespace bitnet::cuda {

inline constexpr const char* usual_nvml = "libnvidia-ml.so.1";

class nvml {
 public:
  // Returns nullptr if the library `file` is missing or does not know the device.
  static std::unique_ptr<nvml> open(const char* file, const std::string& pci_address);
  ~nvml();
  nvml(const nvml&) = delete;
  nvml& operator=(const nvml&) = delete;

  // Fills in the members that the device reports and leaves the others. Any thread.
  void add(bitnet_device_status& out) const;

 private:
  struct calls;
  nvml() = default;
  std::unique_ptr<calls> calls_;
  void* device_ = nullptr;
};

// Says what the user can do about GPUs in MIG mode whose instances the driver does not show.
// Returns "" if the library `file` is missing or reports no such GPU.
std::string advice_on_instances(const char* file);

}  // namespace bitnet::cuda
