#pragma once
// What drivers compile while one build of a plugin is probed, kept for its next probe: else a
// driver that compiles longer than a start waits would begin from nothing each time.
//
// A folder beside the build's answer, which only its owner may enter. The child writes to it, and
// to nothing else: only this build's probes use what lies in it.

#include <cstdint>
#include <filesystem>

namespace bitnet::probe {

constexpr uint64_t most_driver_cache_bytes = uint64_t{128} << 20;

// Makes it if it is not there. "" if it cannot be used: then nothing is kept.
[[nodiscard]] std::filesystem::path open_driver_cache(const std::filesystem::path& folder);
// After a probe: a folder that grew beyond its bound is removed; with 0 any is.
void bound_driver_cache(const std::filesystem::path& folder,
                        uint64_t most_bytes = most_driver_cache_bytes);

}  // namespace bitnet::probe
