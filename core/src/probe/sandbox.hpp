#pragma once
// What the child that runs a plugin's code may not do.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bitnet::probe {

// For the calling process and all that it starts, for good: no core dumps, death with the process
// `parent`, before others when memory runs out, at most half of the machine's memory, and where the
// kernel has Landlock a file system that is read-only but for /dev and the folder `scratch` ("":
// none), no TCP, and (version 6) no signal to a process outside. What lies in the folders `pipes`
// can be written to, and nothing is made or removed there. No Landlock where a driver has yet to
// make one of `late_nodes` (by kernel module): it could not, and a sound device would look broken.
// Says what is in force: "landlock 7, memory 8000 MiB", or "none: ..." with the reason.
[[nodiscard]] std::string enter_sandbox(
    int parent, const std::filesystem::path& scratch,
    const std::map<std::string, std::filesystem::path>& late_nodes,
    const std::vector<std::filesystem::path>& pipes);

}  // namespace bitnet::probe
