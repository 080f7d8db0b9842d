#pragma once
// A manifest declares a backend: NN-<name>.yaml in one of the manifest directories.
//
//   schema: 1                 first, always
//   name: cpu                 [a-z0-9][a-z0-9._-]{0,31}, equal to the file name's
//   version: 0.1.0
//   vendor: org.bitnet        reverse DNS
//   license: Apache-2.0       SPDX
//   url: https://...          optional
//   library: libbitnet-backend-cpu.so   in the plugin directory, or an absolute path
//   abi: {major: 0, min: 1, max: 1}
//   class: cpu                cpu, gpu, npu or other
//   priority: 50              optional; orders backends of one class, higher first
//   by_name_only: false       optional; true: BITNET_BACKENDS=gpu of the build leaves it out
//   sha256: <64 hexadecimal digits>     optional: of the library
//   aliases: [other]          optional: further names that a request may use
//   conflicts: [third]        optional: backends that one process cannot have loaded beside it
//   requires: {nodes: [/dev/mine*]}     optional; see machine_needs
//   probe: {timeout_ms: 60000, env: [MY_DEVICES]} optional; see probe_facts
//   packages: {libfft.so.3: libfft3}    optional: which package provides a missing library
//   dependencies: {libfft.so.3: <64 digits>} optional: the SHA-256 that needed libraries must have

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plugin/codes/codes.hpp"

namespace bitnet::plugin {

constexpr uint64_t max_manifest_bytes = uint64_t{64} * 1024;

// What a backend's answer depends on beside its own file: if one of these changes, a cached probe
// is stale. Only the author of the backend knows the names of its drivers.
struct probe_facts {
  std::vector<std::string> env{};                // variables; the probe gets them, too
  std::vector<std::string> modules{};            // of the kernel, by version
  std::vector<std::string> libraries{};          // found by the dynamic linker and opened by name
  std::vector<std::filesystem::path> folders{};  // absolute; all their files
  std::vector<std::filesystem::path> nodes{};    // in /dev; '*' in the last part is any text
  // By kernel module: nodes that a driver makes when it is first used. If the module is loaded and
  // the node is missing, the probe runs without Landlock, which would prevent that.
  std::map<std::string, std::filesystem::path> late_nodes{};
  // By variable: folders with pipes of a service that the driver writes to. The variable can name
  // another folder; it must be among `env`, too.
  std::map<std::string, std::filesystem::path> pipes{};
};

// What a machine needs for the backend. It is checked before the plugin runs.
struct machine_needs {
  // By architecture, as in `uname -m`: required features of the processor, as in /proc/cpuinfo. So
  // one manifest serves all architectures.
  std::map<std::string, std::vector<std::string>> cpu{};
  std::vector<std::string> libraries{};  // all of them, found by the dynamic linker
  std::vector<std::filesystem::path>
      nodes{};                     // one of them, in /dev; '*' in the last part is any text
  std::vector<std::string> pci{};  // a device like one of them: "10de:*:03*"
};

struct manifest {
  std::string name, version, vendor, license, url;
  std::filesystem::path library;  // as written
  std::string sha256;             // of the library; "" if not given
  uint32_t abi_major = 0, abi_min = 0, abi_max = 0;
  uint32_t device_class = 0;  // BITNET_DEVICE_*
  int32_t priority = 50;
  bool by_name_only = false;           // read by cmake/BitnetBackends.cmake; nothing here uses it
  uint32_t probe_timeout_ms = 60'000;  // for listing and for self-test, each
  std::vector<std::string> aliases;
  std::vector<std::string> conflicts;
  machine_needs needs;
  probe_facts depends_on;
  std::map<std::string, std::string> packages;
  std::map<std::string, std::string> dependencies;  // SHA-256 by library
  std::map<std::string, std::string> places;        // "50-cpu.yaml:3:10" by field, as "abi.min"
  std::vector<std::string> warnings;                // unknown keys
};

// `where`: file name for messages, "50-cpu.yaml:3:10: ...". BN-M-*.
[[nodiscard]] checked<manifest> parse_manifest(const std::string& text, const std::string& where);

// "cpu" of "50-cpu.yaml"; BN-M-NAME for another form.
[[nodiscard]] checked<std::string> name_of_manifest(const std::filesystem::path& file);

// The plugin file that `library` names: a bare name lies in `plugin_directory` and must not lead
// out of it; otherwise an absolute path without "." and "..". BN-M-OUTSIDE.
[[nodiscard]] checked<std::filesystem::path> locate_library(
    const std::filesystem::path& library, const std::filesystem::path& plugin_directory);

// The same in the first of several directories that has the file; in the last one if none has it.
[[nodiscard]] checked<std::filesystem::path> locate_library(
    const std::filesystem::path& library,
    const std::vector<std::filesystem::path>& plugin_directories);

// "cpu", "gpu", "npu", "other" for BITNET_DEVICE_*.
[[nodiscard]] std::string class_name(uint32_t device_class);

}  // namespace bitnet::plugin
