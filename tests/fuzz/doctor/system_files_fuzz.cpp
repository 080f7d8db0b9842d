// Files of /proc and /sys come from containers, emulators and other kernels: no text may crash what
// reads them, and numbers stay in their bounds.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "doctor/pci.hpp"
#include "doctor/system_tree.hpp"
#include "system/control_groups.hpp"

namespace doctor = bitnet::host::doctor;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto count = doctor::count_in(text);
  if (count && (*count == 0 || *count > (uint64_t{1} << 22U))) std::abort();
  for (const std::string_view word : doctor::words_of(text))
    if (word.empty() || word.find_first_of(" \t\r\n") != std::string_view::npos) std::abort();
  if (const auto field = doctor::field_of(text, "Groups"))
    if (field->find('\n') != std::string_view::npos) std::abort();
  const std::string address = doctor::lower_address(text);
  if (!address.empty() && (address.size() != 12 || doctor::lower_address(address) != address))
    std::abort();
  const std::string digits = doctor::hex_digits(text, 4);
  if (!digits.empty() && digits.size() != 4) std::abort();
  for (const bitnet::control_group& group : bitnet::control_groups_in(text, "/r"))
    if (group.folder.native().find("/r/sys/fs/cgroup") != 0) std::abort();
  return 0;
}
