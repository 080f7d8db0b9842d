#pragma once
// Checks a plugin file for its author, and lists all results.

#include <filesystem>

#include "plugin/inspection/inspect.hpp"

namespace bitnet::plugin {

struct lint_result {
  inspection facts;
  findings found;
  uint64_t size_bytes = 0;
};

// `manifest` may be empty. A wrong owner or mode is only a warning, since the file is not installed
// yet. BN-T-MISSING, BN-T-KIND if there is no regular file.
[[nodiscard]] checked<lint_result> lint(const std::filesystem::path& file,
                                        const std::filesystem::path& manifest);

}  // namespace bitnet::plugin
