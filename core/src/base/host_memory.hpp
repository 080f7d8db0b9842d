#pragma once
// Memory of this machine, as far as this process may use it.

#include <cstdint>
#include <filesystem>

namespace bitnet {

// Bytes that this process could take now without anything being swapped out: what the kernel
// estimates (MemAvailable), or less where a control group allows less. 0 if nothing tells. Files
// that are mapped count as free, because their pages can be read again. `root` has proc and sys in
// it.
[[nodiscard]] uint64_t free_host_memory(const std::filesystem::path& root = "/");

}  // namespace bitnet
