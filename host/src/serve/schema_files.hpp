#pragma once
// The schemas of answers, which the build embeds from each API's schemas.json.

#include <span>
#include <string_view>

namespace bitnet::host {

// One JSON object per file: schemas by their names.
[[nodiscard]] std::span<const std::string_view> schema_files();

}  // namespace bitnet::host
