#pragma once
// PCI devices that may compute, and the kernel drivers bound to them.

#include <string>
#include <string_view>
#include <vector>

#include "doctor/system_tree.hpp"

namespace bitnet::host::doctor {

struct pci_device {
  std::string address;         // "0000:01:00.0"
  std::string vendor, device;  // "10de", "2335"; `device` is "" if unreadable
  std::string device_class;    // "030200"
  std::string driver;          // kernel driver; "": none is bound
  std::string driver_version;  // "": the driver is part of the kernel
};

// Returns displays, accelerators and signal processors, sorted by address. A device with an
// unreadable class or vendor is left out.
[[nodiscard]] std::vector<pci_device> pci_devices(const system_tree& system);

// Normalises "0x10de" or "10DE" to "10de". Returns "" unless the text has exactly `digits`
// hexadecimal digits.
[[nodiscard]] std::string hex_digits(std::string_view text, std::size_t digits);
// Normalises an address to the form of sysfs, for any case and number of leading zeros; "" if it is
// not an address.
[[nodiscard]] std::string lower_address(std::string_view address);

}  // namespace bitnet::host::doctor
