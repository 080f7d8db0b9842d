#pragma once
// What the child that runs a stranger's code is kept from.

#include <filesystem>
#include <string>

namespace bitnet::probe {

// For the calling process and all that it starts, for good: no core dumps, death with the process
// `parent`, and where the kernel has Landlock a file system that is read-only but for /dev and the
// folder `scratch` ("": none), and no TCP. Says what is in force: "landlock 4", or "none: ..." with
// the reason.
[[nodiscard]] std::string enter_sandbox(int parent, const std::filesystem::path& scratch);

}  // namespace bitnet::probe
