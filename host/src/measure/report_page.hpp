#pragma once
// Formats rows of `bitnet bench` as one self-contained page with charts and a table, without
// scripts.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bitnet::host::measure {

// Rows may be of models, concurrent requests, kernels and servers; their columns may differ.
[[nodiscard]] std::string report_page(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace bitnet::host::measure
