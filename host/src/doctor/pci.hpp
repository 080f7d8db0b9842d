#pragma once
// Devices of the PCI bus that may compute, and the kernel drivers that are bound to them.

#include <string>
#include <string_view>
#include <vector>

#include "doctor/system_tree.hpp"

namespace bitnet::host::doctor {

struct pci_device {
  std::string address;         // "0000:01:00.0"
  std::string vendor, device;  // "10de", "2335"; the latter is "" where it cannot be read
  std::string device_class;    // "030200"
  std::string driver;          // of the kernel; "": none is bound
  std::string driver_version;  // "": that of the kernel itself
};

// Displays, accelerators and processors of signals, by address. A device whose class or vendor
// cannot be read is left out.
[[nodiscard]] std::vector<pci_device> pci_devices(const system_tree& system);

// "0x10de" or "10DE" as "10de": exactly `digits` of base 16; "" for all else.
[[nodiscard]] std::string hex_digits(std::string_view text, std::size_t digits);
// As sysfs writes addresses, whatever the case and the number of zeros in front; "" where it is no
// address.
[[nodiscard]] std::string lower_address(std::string_view address);

}  // namespace bitnet::host::doctor
