#pragma once
// Problems of the machine and advice, the most important first.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "doctor/verdicts.hpp"

namespace bitnet::host::doctor {

struct finding {
  std::string about;  // "backends", "0000:01:00.0", "governor"
  std::string problem, advice;
};

// `report`: the members of examine() that come before `findings`. `runtime`: the library's report.
[[nodiscard]] std::vector<finding> findings_in(const nlohmann::ordered_json& report,
                                               const nlohmann::json& runtime,
                                               const std::vector<verdict>& devices);

}  // namespace bitnet::host::doctor
