#pragma once
// The peak resident memory of this process.

#include <cstdint>
#include <optional>
#include <string_view>

namespace bitnet::host {

// In bytes, with pages of mapped files; nothing if the system does not report it.
[[nodiscard]] std::optional<uint64_t> peak_memory();

// Reads VmHWM from a text in the form of /proc/self/status.
[[nodiscard]] std::optional<uint64_t> peak_memory_in(std::string_view status);

}  // namespace bitnet::host
