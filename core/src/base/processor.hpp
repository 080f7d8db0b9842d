#pragma once
// The name of this machine's processor.

#include <filesystem>
#include <string>

namespace bitnet {

// "model name" of /proc/cpuinfo, or "" where it has none. `root` has proc in it.
[[nodiscard]] std::string processor_name(const std::filesystem::path& root = "/");

}  // namespace bitnet
