#pragma once
// What AMD's management library (rocm-smi) reports of a device, where it is installed. The calls
// used are declared here: no package with its header is needed to build.

#include <cstdint>
#include <memory>
#include <string>

#include "bitnet/abi/info.h"

namespace bitnet::rocm {

// The newest first.
inline constexpr const char* usual_smi[] = {"librocm_smi64.so.7", "librocm_smi64.so.6",
                                            "librocm_smi64.so.5", "librocm_smi64.so.1"};

class smi {
 public:
  // nullptr if no library of these names is installed, or if the one that is does not know the
  // device: an address such as 0000:03:00.0.
  static std::unique_ptr<smi> open(const std::string& pci_address);
  // The library of this file name.
  static std::unique_ptr<smi> open(const char* file, const std::string& pci_address);
  ~smi();
  smi(const smi&) = delete;
  smi& operator=(const smi&) = delete;

  // Adds what the device reports, and nothing else. From any thread.
  void add(bitnet_device_status& out) const;

 private:
  struct calls;
  smi();
  std::unique_ptr<calls> calls_;
  uint32_t device_ = 0;
};

}  // namespace bitnet::rocm
