#pragma once
// What the child that runs a stranger's code is kept from.

#include <filesystem>
#include <string>

namespace bitnet::probe {

// For the calling process and all that it starts, for good: no core dumps, death with the process
// `parent`, before others when memory runs out, at most half of the machine's memory, and where the
// kernel has Landlock a file system that is read-only but for /dev and the folder `scratch` ("":
// none), no TCP, and (version 6) no signal to a process outside. Says what is in force:
// "landlock 7, memory 8000 MiB", or "none: ..." with the reason.
[[nodiscard]] std::string enter_sandbox(int parent, const std::filesystem::path& scratch);

}  // namespace bitnet::probe
