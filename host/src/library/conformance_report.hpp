#pragma once
// Reads the author's claim about a backend: a report of bitnet-backend-conformance,
// NAME.conformance.json, beside the manifest. The report is not verified, so only expected words
// are taken from it.

#include <cstdint>
#include <string>

namespace bitnet::host {

struct claimed_conformance {
  std::string level;          // none, bronze, silver or gold; "": there is no report
  std::string suite_version;  // "1.0"
  bool same_build = false;    // the report is about this very library file
  std::string problem;        // why the report says nothing; "" if there is none
};

// Arguments as the runtime reports them.
[[nodiscard]] claimed_conformance read_conformance(const std::string& manifest,
                                                   const std::string& name,
                                                   const std::string& build_id);
// Parses a report's text.
[[nodiscard]] claimed_conformance parse_conformance(const std::string& text,
                                                    const std::string& name,
                                                    const std::string& build_id);

// "silver, suite 1.0, self-reported"; "" if there is no report.
[[nodiscard]] std::string in_words(const claimed_conformance& claim);

}  // namespace bitnet::host
