#pragma once
// What a plugin file is, read without executing a byte of it.
//
// Everything comes from the program headers and the dynamic section, the parts that the dynamic
// linker itself uses, so stripped files and files without section headers are read the same. Any
// bytes are safe to give: tests/fuzz/plugin/elf_fuzz.cpp does.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "plugin/codes.hpp"
#include "plugin/trust.hpp"

namespace bitnet::plugin {

// The ELF note of bitnet/abi/note.h.
struct identity {
  std::string name, version, vendor, license, compiler;
  std::string abi;  // "0.0-3": major, oldest and newest minor
  uint32_t abi_major = 0, abi_min = 0, abi_max = 0;
};

struct inspection {
  identity note;
  std::string build_id;               // hex, "" if none
  std::vector<std::string> exports;   // defined dynamic symbols
  std::vector<std::string> needed;    // DT_NEEDED
  std::vector<std::string> run_path;  // DT_RUNPATH or DT_RPATH, split at ':', $ORIGIN as written
};

// Reads and judges the format: an ELF shared object for this machine, whole, with an identity note
// and no other exports than ABI entries. BN-I-*, BN-A-MAJOR.
[[nodiscard]] checked<inspection> inspect(std::span<const std::byte> file);

// The same for a file on disk, and what depends on the system: BN-A-MINOR, BN-I-DEPENDENCY (with
// BITNET_UNAVAILABLE). `packages` is the manifest's map from library to package.
[[nodiscard]] checked<inspection> inspect_file(const trusted_file& file,
                                               const std::map<std::string, std::string>& packages);

// Is [note.abi_min, note.abi_max] of this core's major? BN-A-MAJOR, BN-A-MINOR.
[[nodiscard]] checked<void> check_abi(const identity& note);

// The text for a plugin of another ABI major.
[[nodiscard]] defect other_major(const std::string& name, uint32_t major);
// The text for a plugin that speaks only the minors [low, high].
[[nodiscard]] defect other_minor(const std::string& name, uint32_t low, uint32_t high);

}  // namespace bitnet::plugin
