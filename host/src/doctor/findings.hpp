#pragma once
// What is not as it should be, and what to do, in the order in which it counts.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "doctor/verdicts.hpp"

namespace bitnet::host::doctor {

struct finding {
  std::string about;  // "backends", "0000:01:00.0", "governor"
  std::string problem, advice;
};

// `report`: the members before `findings` of examine(); `runtime`: of the library.
[[nodiscard]] std::vector<finding> findings_in(const nlohmann::ordered_json& report,
                                               const nlohmann::json& runtime,
                                               const std::vector<verdict>& devices);

}  // namespace bitnet::host::doctor
