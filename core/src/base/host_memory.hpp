#pragma once
// Memory of this machine, as far as this process may use it.

#include <cstdint>
#include <filesystem>

namespace bitnet {

// Bytes that this process could take now without anything being swapped out: what the kernel
// estimates (MemAvailable), or less where a control group allows less. 0 if unknown. Files that are
// mapped count as free, because their pages can be read again. `root` has proc and sys in it.
[[nodiscard]] uint64_t free_host_memory(const std::filesystem::path& root = "/");

// Hands memory that was freed back to the system, also from between what is still in use, where an
// allocator keeps it for itself: a quarter of a gigabyte after loading a model of 27B.
void give_back_freed_memory();

}  // namespace bitnet
