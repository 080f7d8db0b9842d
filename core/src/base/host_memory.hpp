#pragma once
// Memory of this machine that this process may use.

#include <cstdint>
#include <filesystem>

namespace bitnet {

// Bytes that this process could allocate now without swapping: the kernel's estimate
// (MemAvailable), or less if a control group allows less. 0: unknown. Mapped files count as free,
// because their pages can be read again. `root` contains proc and sys.
[[nodiscard]] uint64_t free_host_memory(const std::filesystem::path& root = "/");

// Makes the allocator return freed memory to the system, also between used blocks: after loading a
// model of 27B it keeps a quarter of a gigabyte.
void give_back_freed_memory();

}  // namespace bitnet
