#pragma once
// What a plugin file is, read without executing a byte of it.
//
// The loader and bitnet-backend-lint share this; the one stops at the first error, the other shows
// all that was found. Everything comes from the program headers and the dynamic section, the parts
// that the dynamic linker itself uses, so stripped files and files without section headers are read
// the same. Any bytes are safe to give: tests/fuzz/plugin/elf_fuzz.cpp does.

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
  std::string device_class;  // "gpu"; "" if it does not say
  std::string abi;           // "0.0-3": major, oldest and newest minor
  uint32_t abi_major = 0, abi_min = 0, abi_max = 0;
  bool unloadable = false;  // among the words of the field "flags"
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
  bool run_path_is_new = false;       // it is DT_RUNPATH
  std::vector<version_need> versions;
  std::vector<std::string> pins;  // why dlclose would leave it mapped, or worse
};

// All that is known of a file, right or wrong.
struct examination {
  inspection facts;
  findings found;
};

// The format alone: the rules that hold on any machine. BN-I-*, BN-A-MAJOR.
[[nodiscard]] examination examine(std::span<const std::byte> file);

// The same for a file on disk, and what depends on this machine: BN-A-MINOR, BN-I-RUN-PATH,
// BN-I-DEPENDENCY and BN-I-VERSION (both with BITNET_UNAVAILABLE), with a `sha256` BN-T-HASH.
// `packages` is the manifest's map from library to package, `hashes` the one from library to
// SHA-256.
[[nodiscard]] examination examine_file(const trusted_file& file,
                                       const std::map<std::string, std::string>& packages,
                                       const std::string& sha256 = "",
                                       const std::map<std::string, std::string>& hashes = {});

// The first error of examine(), or what it read.
[[nodiscard]] checked<inspection> inspect(std::span<const std::byte> file);

// The first error of examine_file(), with the file's name; or what it read.
[[nodiscard]] checked<inspection> inspect_file(
    const trusted_file& file, const std::map<std::string, std::string>& packages,
    const std::string& sha256 = "", const std::map<std::string, std::string>& hashes = {});

// The description of a note of bitnet/abi/note.h. BN-I-NOTE.
[[nodiscard]] checked<identity> parse_identity(std::span<const std::byte> description);

// What a plugin needs and where it has that looked for: fills `needed`, `run_path`, `versions`.
void read_needs(const elf_image& image, inspection& out);

// Is [note.abi_min, note.abi_max] of this core's major? BN-A-MAJOR, BN-A-MINOR.
[[nodiscard]] checked<void> check_abi(const identity& note);

// The text for a plugin of another ABI major.
[[nodiscard]] defect other_major(const std::string& name, uint32_t major);
// Of major 0, the oldest minor that this core speaks: 0.0 had other slots (docs/adr/0001).
inline constexpr uint32_t oldest_minor = BITNET_ABI_OLDEST_MINOR;
// The text for a plugin that speaks only the minors [low, high].
[[nodiscard]] defect other_minor(const std::string& name, uint32_t low, uint32_t high);

}  // namespace bitnet::plugin
