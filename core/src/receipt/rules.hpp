#pragma once
// Judges a receipt without a network: its signature, its form, whether its parts agree, and whether
// the files that it names are the local ones.
//
// docs/reference/receipts.md lists the rules; tests/reference/receipts.py is an independent
// implementation.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"
#include "receipt/shape.hpp"

namespace bitnet::receipt {

struct trusted_signer {
  std::string key;   // hexadecimal
  std::string name;  // of its file
};

struct question {
  bool allow_unsigned = false;
  std::vector<trusted_signer> signers;
  bool look_at_plugins = true;                 // at the paths in the receipt
  std::optional<std::filesystem::path> model;  // file or folder that the receipt must be about
  bool gpu_kernels = false;                    // some kernel ran on a device of class gpu
  std::optional<double> fused_percent;         // minimum, of kernel calls
};

struct verdict {
  findings found;
  std::string signed_by;  // file name of the signer's key; "": not signed
  json::value statement;  // null if it cannot be read

  [[nodiscard]] bool is_valid() const;    // no finding is an error
  [[nodiscard]] bool gates_pass() const;  // no finding is a gate
};

// BITNET_BAD_DATA for a text that is no envelope.
[[nodiscard]] result<verdict> judge(std::string_view text, const question& asked);

// consistency.cpp: checks that the parts of a predicate of valid form agree.
void check_counters(const json::value& predicate, findings& found);
void check_selection(const json::value& predicate, findings& found);
void check_answer(const json::value& predicate, findings& found);
void check_gates(const json::value& predicate, findings& found);

// files.cpp: compares the files that it names with the local ones.
void check_plugins(const json::value& predicate, findings& found);
void check_model(const json::value& predicate, const std::filesystem::path& model, findings& found);

}  // namespace bitnet::receipt
