#pragma once
// The only place where the library reads its environment. docs/reference/environment.md is its
// page.
//
// A privileged process does not listen to variables that could make it load other code: see
// user_places_refused().

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

// The comma list of BITNET_BACKENDS, the only backends that may be used, and the patterns of
// BITNET_BACKENDS_DISABLE, those that may not. They can only take backends away.
std::vector<std::string> only_backends();
std::vector<std::string> disabled_backends();

// How long the library waits for one step of a device: BITNET_STEP_TIMEOUT seconds, or 600 if it is
// unset or no number; the largest number if it is 0.
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

// Those that a user decides on, after the others: $XDG_DATA_HOME's, then each of
// BITNET_BACKEND_PATH, with the variable that named it.
struct user_directory {
  std::filesystem::path path;
  std::string named_by;
};
std::vector<user_directory> user_manifest_directories();

// Why the user's folders and variables do not decide which code runs in this process; "" if they
// do. With raised privileges (AT_SECURE: setuid, setgid or file capabilities) never. As root,
// because its variables are often another user's, only if the request says so: `wanted` comes from
// the program's own code or command line, which no variable can reach.
std::string user_places_refused(bool wanted);
// The rule itself.
std::string user_places_refused(bool wanted, bool raised, uint32_t effective_uid);

// `directory` without `end`, the last folders of its path; nothing if it ends otherwise, or if
// `end` is absolute.
std::optional<std::filesystem::path> without_end(std::filesystem::path directory,
                                                 std::filesystem::path end);

// What the build was configured with. The folder is absolute or relative to the prefix.
struct installation {
  std::filesystem::path prefix, library_directory;
};
// Where `folder` of an installation lies, which may have been moved: the library in
// `own_directory` shows by how much. Of an absolute folder it takes the one that was moved along,
// as in a build tree, or else the one that it names.
std::filesystem::path place_of(const std::filesystem::path& folder,
                               const std::filesystem::path& own_directory, const installation& of);

// Where a plugin that `manifest` names by a bare file name may lie, the likeliest first: folders of
// the prefix under which the manifest itself is installed, if its place shows it (libraries may be
// in another of the usual folders there), then that of the running libbitnet. Nothing here is a
// reason to trust what lies there: plugin/trust.hpp is.
std::vector<std::filesystem::path> backend_directories(const std::filesystem::path& manifest);

// The program that probes plugins, at its place in the installation of the running libbitnet. No
// variable can name another one.
std::filesystem::path probe_helper();

// Whether this process keeps nothing on disk. It does not where the user that started it has other
// rights than it has (setuid, setgid, file capabilities, or an effective user that is not the real
// one), since that user could read or redirect what is written.
bool caches_refused();

// Where probes are remembered: root's /var/cache/bitnet/probe, a user's $XDG_CACHE_HOME (or
// ~/.cache) and bitnet/probe in it; "" if there is no such place.
std::filesystem::path probe_cache();

// Where the key lies that signs the receipts of a user: $XDG_DATA_HOME (or ~/.local/share) and
// bitnet in it; "" if there is no such place. The code that opens it checks its owner.
std::filesystem::path receipt_keys();

// Where files may lie that go when the process ends: TMPDIR if that is an absolute path, which a
// process with raised privileges does not listen to, else /tmp.
std::filesystem::path temporary_directory();
// The rule itself.
std::filesystem::path temporary_directory(bool raised);

// Where backend `name` may keep what it made, such as compiled kernels: backends/<name> beside the
// folder of probe_cache(); "" if there is no such place.
std::filesystem::path backend_cache(std::string_view name);

// "NAME=value" of the declared ones that are set. Names that control the dynamic loader or libc are
// never among them, even where a manifest declares them.
std::vector<std::string> declared_variables(const std::vector<std::string>& declared);

// What a probe's child may see: the names of a fixed list, and the declared ones as above.
std::vector<std::string> probe_variables(const std::vector<std::string>& declared);

// The folder that a declared variable names, if it is an absolute one below "/", else the usual
// one. Programs with more rights than their user have the usual one.
std::filesystem::path declared_folder(const std::string& name, const std::filesystem::path& usual);

// Everything, by name: what a plugin under probe may not change.
std::map<std::string, std::string> all_variables();

// Settings for one backend: BITNET_<NAME>_<KEY>=value, upper case, '-' and '.' as '_', become
// {key, value} with the key in lower case. BITNET_CPU_ISA=avx2 is {"isa", "avx2"} for "cpu".
std::vector<std::pair<std::string, std::string>> backend_params(std::string_view backend_name);

}  // namespace bitnet::environment
