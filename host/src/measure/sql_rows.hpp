#pragma once
// Formats result rows as SQL, as llama-bench does.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bitnet::host::measure {

// A table `bitnet_bench` with a column for every value that is no list or object, and a row per
// result. The values decide whether a column is INTEGER, REAL or TEXT; missing values are NULL.
[[nodiscard]] std::string sql_rows(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace bitnet::host::measure
