#pragma once
// Reads a plugin file without executing a byte of it.
//
// The loader and bitnet-backend-lint share this. Only program headers and the dynamic section are
// read, as the dynamic linker does, so stripped files and files without section headers give the
// same result. Any input is safe: tests/fuzz/plugin/elf_fuzz.cpp.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bitnet/abi/base.h"
#include "plugin/codes/codes.hpp"
#include "plugin/codes/finding.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

class elf_image;

// The ELF note of bitnet/abi/note.h.
struct identity {
  std::string name, version, vendor, license, compiler;
  std::string device_class;  // "gpu"; "" if absent
  std::string abi;           // "0.0-3": major, oldest and newest minor
  uint32_t abi_major = 0, abi_min = 0, abi_max = 0;
  bool unloadable = false;  // "flags" contains this word
};

// A version of symbols that a needed library must have; a weak one may be missing.
struct version_need {
  std::string library, version;  // "libc.so.6", "GLIBC_2.34"
  bool weak = false;
};

struct inspection {
  identity note;
  std::string build_id;               // hex, "" if none
  std::vector<std::string> exports;   // defined dynamic symbols
  std::vector<std::string> needed;    // DT_NEEDED
  std::vector<std::string> run_path;  // DT_RUNPATH or DT_RPATH, split at ':', $ORIGIN as written
  bool run_path_is_new = false;       // from DT_RUNPATH
  std::vector<version_need> versions;
  std::vector<std::string> pins;  // why dlclose would not unmap it, or would be unsafe
};

// All that was read from a file, and all findings.
struct examination {
  inspection facts;
  findings found;
};

// Checks the format: the rules that hold on any machine. BN-I-*, BN-A-MAJOR.
[[nodiscard]] examination examine(std::span<const std::byte> file);

// The same for a file on disk, plus checks that depend on this machine: BN-A-MINOR, BN-I-RUN-PATH,
// BN-I-DEPENDENCY and BN-I-VERSION (both with BITNET_UNAVAILABLE), and BN-T-HASH if `sha256` is
// given. `packages`: the manifest's map from library to package; `hashes`: from library to SHA-256.
[[nodiscard]] examination examine_file(const trusted_file& file,
                                       const std::map<std::string, std::string>& packages,
                                       const std::string& sha256 = "",
                                       const std::map<std::string, std::string>& hashes = {});

// The data of examine(), or its first error.
[[nodiscard]] checked<inspection> inspect(std::span<const std::byte> file);

// The data of examine_file(), or its first error with the file's name.
[[nodiscard]] checked<inspection> inspect_file(
    const trusted_file& file, const std::map<std::string, std::string>& packages,
    const std::string& sha256 = "", const std::map<std::string, std::string>& hashes = {});

// Parses the description of a note of bitnet/abi/note.h. BN-I-NOTE.
[[nodiscard]] checked<identity> parse_identity(std::span<const std::byte> description);

// Fills `needed`, `run_path` and `versions`.
void read_needs(const elf_image& image, inspection& out);

// Checks that this core supports [note.abi_min, note.abi_max] of its major. BN-A-MAJOR, BN-A-MINOR.
[[nodiscard]] checked<void> check_abi(const identity& note);

// The error for a plugin of another ABI major.
[[nodiscard]] defect other_major(const std::string& name, uint32_t major);
// The oldest supported minor of major 0: 0.0 had other slots (docs/adr/0001).
inline constexpr uint32_t oldest_minor = BITNET_ABI_OLDEST_MINOR;
// The error for a plugin with only the minors [low, high].
[[nodiscard]] defect other_minor(const std::string& name, uint32_t low, uint32_t high);

}  // namespace bitnet::plugin
