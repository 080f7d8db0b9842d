#pragma once
// Describes a shared object: kind, author, purpose, and whether it could be loaded here. Works for
// plugins and for other libraries such as libllama.so, of any machine. No code of the file is
// executed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/analysis/any_elf.hpp"
#include "plugin/analysis/symbol_groups.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/inspect.hpp"

namespace bitnet::plugin {

struct library_analysis {
  uint64_t size_bytes = 0;
  uint32_t bits = 0;  // 32 or 64
  bool big_endian = false;
  std::string machine;  // "x86-64"
  bool for_this_machine = false;
  std::string soname, build_id;  // "" if it has none
  bool stripped = false;         // has no table of all symbols
  uint64_t symbols = 0;          // distinct names in both tables
  uint64_t exported = 0;         // names visible to other objects
  std::array<grouped_symbols, n_symbol_groups> groups;
  std::vector<std::string> formats;
  std::vector<std::string> accelerators;  // needed libraries that belong to a GPU interface
  std::string inference;                  // one line of text

  std::optional<identity> note;  // if it is a bitnet backend
  std::string entry;             // exported entry of the newest major, "" if none
  // The installed manifest that names this file, if one does.
  std::filesystem::path manifest;
  std::string manifest_license;

  std::vector<std::string> needed;        // DT_NEEDED
  std::vector<needed_library> libraries;  // direct and indirect; only for this machine
  bool libraries_known = false;           // `libraries` was searched for
  // The newest version of each family that it needs: {"GLIBC", "2.34"}.
  std::map<std::string, std::string> versions;
  std::string cpu_baseline;  // "x86-64-v3", noted by its linker; "" if not

  // Why it cannot be loaded here; empty if it can.
  std::vector<defect> problems;
};

// Analyses what does not depend on other files. BN-I-FORMAT and BN-I-TRUNCATED if it is no shared
// object.
[[nodiscard]] checked<library_analysis> analyze(std::span<const std::byte> file,
                                                uint64_t most_names);

// The same for a file on disk, with its dependencies and its manifest. BN-T-MISSING, BN-T-KIND.
[[nodiscard]] checked<library_analysis> analyze_file(const std::filesystem::path& file,
                                                     uint64_t most_names);

}  // namespace bitnet::plugin
