#pragma once
// The form of a receipt's predicate: the same members and kinds as docs/reference/
// receipt.schema.json has, whose judgement tests/cli/test_receipts.py compares with this one.
//
// Members that are not known are left alone: receipts only gain members.

#include <cstdint>
#include <string>
#include <vector>

#include "json/value.hpp"

namespace bitnet::receipt {

// What is wrong with a receipt, or was found missing.
struct finding {
  enum class level_type : uint8_t {
    error,  // the receipt does not say the truth, or not the whole
    gate,   // it does, and not what was asked for
    note    // something could not be looked at
  };
  level_type level = level_type::error;
  std::string rule;   // "schema", "signature", "counters", ...
  std::string field;  // "kernel_stats[2].device"; of the payload, but for "signatures"
  std::string text;
};
using findings = std::vector<finding>;

// Rows of the counters, and letters of a kernel's id, as 1.0.0 has them.
inline constexpr std::size_t most_kernels = 10'000;
inline constexpr std::size_t longest_kernel_id = 128;

// At most 64 findings.
void check_shape(const json::value& predicate, findings& found);

}  // namespace bitnet::receipt
