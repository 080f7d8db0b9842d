#pragma once
// Keeps the files that drivers compile during a probe for the next probe of the build. Otherwise a
// driver that compiles longer than a start waits would begin from scratch each time.
//
// The folder lies beside the build's answer, and only its owner may enter. The child can write only
// there, and only probes of this build use it.

#include <cstdint>
#include <filesystem>

namespace bitnet::probe {

constexpr uint64_t most_driver_cache_bytes = uint64_t{128} << 20;

// Makes the folder if it is missing. Returns "" if it cannot be used: then nothing is kept.
[[nodiscard]] std::filesystem::path open_driver_cache(const std::filesystem::path& folder);
// After a probe: removes the folder if it exceeds its limit; a limit of 0 always removes it.
void bound_driver_cache(const std::filesystem::path& folder,
                        uint64_t most_bytes = most_driver_cache_bytes);

}  // namespace bitnet::probe
