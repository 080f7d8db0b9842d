#include "doctor/pci.hpp"

#include <algorithm>
#include <array>

#include "text/ascii.hpp"

namespace bitnet::host::doctor {
namespace {

// 03: displays; 12: accelerators; 1180: signal processors, the class of AMD's NPUs.
bool may_compute(std::string_view device_class) {
  constexpr auto kinds = std::to_array<std::string_view>({"03", "12", "1180"});
  return std::ranges::any_of(kinds, [&](auto kind) { return device_class.starts_with(kind); });
}

// A driver that is a module may report its version.
std::string version_of(const system_tree& system, const std::string& driver) {
  if (driver.empty()) return "";
  return system.line(std::filesystem::path("sys/module") / driver / "version");
}

}  // namespace

std::string hex_digits(std::string_view text, std::size_t digits) {
  std::string out = lower_ascii(std::string(text));
  if (out.starts_with("0x")) out.erase(0, 2);
  return out.size() == digits && std::ranges::all_of(out, is_hex_ascii) ? out : "";
}

std::string lower_address(std::string_view address) {
  constexpr std::string_view form = "0000:00:00.0";
  std::string out = lower_ascii(std::string(address));
  while (out.size() > form.size() && out.front() == '0') out.erase(0, 1);
  if (out.size() != form.size()) return "";
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == '0' ? !is_hex_ascii(out[i]) : out[i] != form[i]) return "";
  return out;
}

std::vector<pci_device> pci_devices(const system_tree& system) {
  const std::filesystem::path all = "sys/bus/pci/devices";
  std::vector<pci_device> out;
  for (const std::string& name : system.names(all)) {
    pci_device one;
    one.address = lower_address(name);
    one.device_class = hex_digits(system.line(all / name / "class"), 6);
    one.vendor = hex_digits(system.line(all / name / "vendor"), 4);
    one.device = hex_digits(system.line(all / name / "device"), 4);
    if (one.address.empty() || one.vendor.empty() || !may_compute(one.device_class)) continue;
    one.driver = system.link_end(all / name / "driver");
    one.driver_version = version_of(system, one.driver);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace bitnet::host::doctor
