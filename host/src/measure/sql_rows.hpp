#pragma once
// Rows of results as SQL, as llama-bench writes them.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bitnet::host::measure {

// A table `bitnet_bench` of every value that is no list or object, and a row for each. A column is
// INTEGER, REAL or TEXT by what the rows have in it; what a row lacks is NULL.
[[nodiscard]] std::string sql_rows(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace bitnet::host::measure
