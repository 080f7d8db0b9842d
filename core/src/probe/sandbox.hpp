#pragma once
// Restricts the child that runs a plugin's code.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bitnet::probe {

// Restricts the calling process and its children permanently: no core dumps, death with the process
// `parent`, first choice of the kernel when memory runs out, private memory of half of the
// machine's, but 4 to 64 GiB. With Landlock also: the file system is read-only except /dev and the
// folder `scratch` ("": none), no TCP, and (version 6) no signal to a process outside. Files in the
// folders `pipes` can be written, but not made or removed. Landlock is not used while a node of
// `late_nodes` (by kernel module) is missing: the driver could not make it, and a working device
// would look broken. Returns what is in force: "landlock 7, memory 8000 MiB", or "none: ..." with
// the reason.
[[nodiscard]] std::string enter_sandbox(
    int parent, const std::filesystem::path& scratch,
    const std::map<std::string, std::filesystem::path>& late_nodes,
    const std::vector<std::filesystem::path>& pipes);

}  // namespace bitnet::probe
