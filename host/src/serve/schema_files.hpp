#pragma once
// The schemas of answers that each API has as schemas.json in its folder, as the build embeds them.

#include <span>
#include <string_view>

namespace bitnet::host {

// JSON of an object for each file: the schemas by their names.
[[nodiscard]] std::span<const std::string_view> schema_files();

}  // namespace bitnet::host
