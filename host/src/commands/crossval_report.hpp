#pragma once
// The reports of `bitnet crossval`, as values and as text.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "crossval/compare.hpp"
#include "crossval/discovery.hpp"
#include "crossval/stream.hpp"
#include "session/engine.hpp"

namespace bitnet::host {

struct crossval_report {
  std::string model;            // the file
  std::string device;           // as the other engine's process reports it
  std::string library_version;  // as the other engine's process says it
  crossval::build other;
  crossval::model_facts other_model;
  crossval::bounds within;
  std::vector<crossval::prompt_comparison::outcome> prompts;  // in the order of the file
  [[nodiscard]] bool agrees() const;
};

// `library_version`: as above; "": no library was loaded. `problem`: why it cannot be used.
struct find_report {
  crossval::discovery found;
  std::string origin, library_version, problem;
};

// Facts for a receipt: the whole report, and the bounds as gates, which verify-receipt judges.
[[nodiscard]] nlohmann::json parity_facts(const crossval_report& report);

// `format`: "md" or "json".
[[nodiscard]] std::string report_text(const crossval_report& report, const std::string& format);
[[nodiscard]] std::string report_text(const find_report& report, const std::string& format);

}  // namespace bitnet::host
