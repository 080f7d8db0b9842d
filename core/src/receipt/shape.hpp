#pragma once
// Checks the form of a receipt's predicate, with the members and types of
// docs/reference/receipt.schema.json. tests/cli/test_receipts.py compares this check with the
// schema.
//
// Unknown members are ignored: later versions only add members.

#include <cstdint>
#include <string>
#include <vector>

#include "json/value.hpp"

namespace bitnet::receipt {

// A fault or a gap in a receipt.
struct finding {
  enum class level_type : uint8_t {
    error,  // the receipt is wrong or incomplete
    gate,   // it is right, but not as asked for
    note    // something could not be checked
  };
  level_type level = level_type::error;
  std::string rule;   // "schema", "signature", "counters", ...
  std::string field;  // "kernel_stats[2].device"; path in the payload, but "signatures"
  std::string text;
};
using findings = std::vector<finding>;

// Limits of 1.0.0: rows of counters, and length of a kernel's id.
inline constexpr std::size_t most_kernels = 10'000;
inline constexpr std::size_t longest_kernel_id = 128;

// At most 64 findings.
void check_shape(const json::value& predicate, findings& found);

}  // namespace bitnet::receipt
