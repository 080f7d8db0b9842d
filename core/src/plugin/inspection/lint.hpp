#pragma once
// All that is right and wrong with a plugin file, for its author.

#include <filesystem>

#include "plugin/inspection/inspect.hpp"

namespace bitnet::plugin {

struct lint_result {
  inspection facts;
  findings found;
  uint64_t size_bytes = 0;
};

// `manifest` may be empty. A file whose owner or mode the loader would refuse is a warning only: it
// is yet to be installed. BN-T-MISSING, BN-T-KIND where there is nothing to look at.
[[nodiscard]] checked<lint_result> lint(const std::filesystem::path& file,
                                        const std::filesystem::path& manifest);

}  // namespace bitnet::plugin
