#pragma once
// Only this file reads the library's environment variables. docs/reference/environment.md
//
// A privileged process ignores variables that could make it load other code: see
// user_places_rejected().

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace bitnet::environment {

// BITNET_DEVICE, "" if unset.
std::string device();

// only_backends: the list BITNET_BACKENDS of backends that may be used. disabled_backends: the
// patterns in BITNET_BACKENDS_DISABLE of those that may not. Neither can add a backend.
std::vector<std::string> only_backends();
std::vector<std::string> disabled_backends();

// The time limit of one step of a device: BITNET_STEP_TIMEOUT in seconds; 600 if it is unset or no
// number; unlimited (the largest number) if it is 0.
uint64_t step_timeout_ns();

// BITNET_GPU_FAKE, "" if unset.
std::string fake_gpus();
// BITNET_STRICT_MODE and BITNET_STRICT_NO_FAKE_GPU: 1, true, yes or on; 0, false, no, off or
// nothing. BITNET_INVALID_ARGUMENT for other words.
result<bool> strict_mode();
result<bool> strict_no_fake_gpu();

// Directories of manifests, lowest precedence first: the installation's own, /usr/share,
// /usr/local/share, /run, /etc.
std::vector<std::filesystem::path> system_manifest_directories();

// The user's directories of manifests, searched after the system's: that in $XDG_DATA_HOME, then
// each of BITNET_BACKEND_PATH, with the variable that named it.
struct user_directory {
  std::filesystem::path path;
  std::string named_by;
};
std::vector<user_directory> user_manifest_directories();

// Returns why folders and variables of the user may not decide which code this process loads; "" if
// they may. With raised privileges (AT_SECURE: setuid, setgid or file capabilities) they never may.
// For root they may only if `wanted`, since root's variables are often another user's; `wanted`
// comes from the program's code or command line, which no variable can change.
std::string user_places_rejected(bool wanted);
// The rule, as a function of its inputs.
std::string user_places_rejected(bool wanted, bool raised, uint32_t effective_uid);

// Removes the folders `end` from the end of `directory`; nullopt if it does not end so, or if `end`
// is absolute.
std::optional<std::filesystem::path> without_end(std::filesystem::path directory,
                                                 std::filesystem::path end);

// What the build was configured with. The folder is absolute or relative to the prefix.
struct installation {
  std::filesystem::path prefix, library_directory;
};
// Finds `folder` of an installation that may have been moved; the place of the library,
// `own_directory`, shows how far. For an absolute folder: the one that was moved along, as in a
// build tree, or else the one that it names.
std::filesystem::path place_of(const std::filesystem::path& folder,
                               const std::filesystem::path& own_directory, const installation& of);

// Folders that may have the plugin that `manifest` names by a bare file name, the likeliest first:
// folders of the prefix of the manifest, if its place shows one (libraries may be in another of the
// usual folders there), then the folder of the running libbitnet. The place proves no trust: see
// plugin/trust.hpp.
std::vector<std::filesystem::path> backend_directories(const std::filesystem::path& manifest);

// The program that probes plugins, in the installation of the running libbitnet. No variable can
// replace it.
std::filesystem::path probe_helper();

// Whether this process writes no cache. True if the user that started it has other rights than the
// process (setuid, setgid, file capabilities, or an effective user that is not the real one): that
// user could read or redirect the files.
bool caches_rejected();

// The folder of cached probes: /var/cache/bitnet/probe for root, else bitnet/probe in
// $XDG_CACHE_HOME (or ~/.cache); "" if there is none.
std::filesystem::path probe_cache();

// The folder of the key that signs a user's receipts: bitnet in $XDG_DATA_HOME (or ~/.local/share);
// "" if there is none. The code that opens the key checks its owner.
std::filesystem::path receipt_keys();

// The folder for files that are deleted when the process ends: TMPDIR if it is an absolute path and
// the process has no raised privileges, else /tmp.
std::filesystem::path temporary_directory();
// The rule, as a function of its input.
std::filesystem::path temporary_directory(bool raised);

// The folder in which backend `name` may cache files such as compiled kernels: backends/<name>
// beside the folder of probe_cache(); "" if there is none.
std::filesystem::path backend_cache(std::string_view name);

// Returns "NAME=value" for each declared variable that is set. Variables that control the dynamic
// loader or libc are left out, even if a manifest declares them.
std::vector<std::string> declared_variables(const std::vector<std::string>& declared);

// The variables that a probe's child process gets: a fixed list, and the declared ones as above.
std::vector<std::string> probe_variables(const std::vector<std::string>& declared);

// The folder that a declared variable names, if it is an absolute path below "/"; else `usual`. A
// privileged process always gets `usual`.
std::filesystem::path declared_folder(const std::string& name, const std::filesystem::path& usual);

// All variables by name: a plugin under probe must not change them.
std::map<std::string, std::string> all_variables();

// Settings for one backend: BITNET_<NAME>_<KEY>=value, upper case, '-' and '.' as '_', become
// {key, value} with the key in lower case. BITNET_CPU_ISA=avx2 is {"isa", "avx2"} for "cpu".
std::vector<std::pair<std::string, std::string>> backend_params(std::string_view backend_name);

}  // namespace bitnet::environment
