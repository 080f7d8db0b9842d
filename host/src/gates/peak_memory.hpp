#pragma once
// The most memory that this process had in RAM so far.

#include <cstdint>
#include <optional>
#include <string_view>

namespace bitnet::host {

// Bytes, with pages of mapped files; nothing where the system does not say it.
[[nodiscard]] std::optional<uint64_t> peak_memory();

// VmHWM in a text of the form of /proc/self/status.
[[nodiscard]] std::optional<uint64_t> peak_memory_in(std::string_view status);

}  // namespace bitnet::host
