#pragma once
// What a shared object is, its author and purpose, and whether it could be loaded here: of our
// plugins and of foreign libraries such as libllama.so, of this machine and of others. Nothing of
// the file is executed.

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
  bool stripped = false;         // without the table of all symbols
  uint64_t symbols = 0;          // names, of both tables together
  uint64_t exported = 0;         // names that other objects may use
  std::array<grouped_symbols, n_symbol_groups> groups;
  std::vector<std::string> formats;
  std::vector<std::string> accelerators;  // needed libraries that are interfaces of a GPU
  std::string inference;                  // one line of text

  std::optional<identity> note;  // of a bitnet backend
  std::string entry;             // its exported entry of the newest major, "" if none
  // The installed manifest that names this file, if one does.
  std::filesystem::path manifest;
  std::string manifest_license;

  std::vector<std::string> needed;        // DT_NEEDED
  std::vector<needed_library> libraries;  // those and theirs; only of a file for this machine
  bool libraries_known = false;           // they were looked for
  // The newest version of each family that it needs: {"GLIBC", "2.34"}.
  std::map<std::string, std::string> versions;
  std::string cpu_baseline;  // "x86-64-v3" as its linker noted it, "" if it did not

  // Why it cannot be loaded here; empty if it can.
  std::vector<defect> problems;
};

// All but what depends on other files. BN-I-FORMAT and BN-I-TRUNCATED for what is no shared
// object.
[[nodiscard]] checked<library_analysis> analyze(std::span<const std::byte> file,
                                                uint64_t most_names);

// The same of a file on disk, with its dependencies and its manifest. BN-T-MISSING, BN-T-KIND.
[[nodiscard]] checked<library_analysis> analyze_file(const std::filesystem::path& file,
                                                     uint64_t most_names);

}  // namespace bitnet::plugin
