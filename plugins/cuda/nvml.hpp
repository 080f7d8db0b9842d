#pragma once
// What NVIDIA's management library reports of a device, where it is installed. Its header is in no
// toolkit that has only a compiler, so that the calls and structs used are declared here.

#include <cstdint>
#include <memory>
#include <string>

#include "bitnet/abi/info.h"

namespace bitnet::cuda {

inline constexpr const char* usual_nvml = "libnvidia-ml.so.1";

class nvml {
 public:
  // nullptr if the library of this file name does not know the device.
  static std::unique_ptr<nvml> open(const char* file, const std::string& pci_address);
  ~nvml();
  nvml(const nvml&) = delete;
  nvml& operator=(const nvml&) = delete;

  // Adds what the device reports, and nothing else. From any thread.
  void add(bitnet_device_status& out) const;

 private:
  struct calls;
  nvml() = default;
  std::unique_ptr<calls> calls_;
  void* device_ = nullptr;
};

// What a user can do about GPUs that are cut into instances (MIG mode), of which the driver shows
// none; empty where the library of this file name knows of no such GPU.
std::string advice_on_instances(const char* file);

}  // namespace bitnet::cuda
