#pragma once
// Rows of `bitnet bench` as one page of charts and a table, without scripts and with nothing from
// elsewhere.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bitnet::host::measure {

// Of tests of models, of many requests, of kernels and of servers; their columns may differ.
[[nodiscard]] std::string report_page(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace bitnet::host::measure
