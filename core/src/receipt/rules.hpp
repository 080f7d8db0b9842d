#pragma once
// Whether a receipt says the truth, as far as that can be judged without a network: its signature,
// its form, whether its parts agree, and whether the files that it names are those that are here.
//
// docs/reference/receipts.md lists the rules; tests/reference/receipts.py is a second judge that
// shares no code with this one.

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
  bool look_at_plugins = true;                 // at the paths that it names
  std::optional<std::filesystem::path> model;  // that it must be about: a file, or a folder
  bool gpu_kernels = false;                    // some kernel ran on a device of class gpu
  std::optional<double> fused_percent;         // of calls of kernels, at least
};

struct verdict {
  findings found;
  std::string signed_by;  // the name of the signer's file; "": not signed
  json::value statement;  // null where it cannot be read

  [[nodiscard]] bool is_valid() const;    // no finding is an error
  [[nodiscard]] bool gates_pass() const;  // none is a gate
};

// BITNET_BAD_DATA for what is no envelope.
[[nodiscard]] result<verdict> judge(std::string_view text, const question& asked);

// consistency.cpp: whether the parts of a predicate, which has the right form, agree.
void check_counters(const json::value& predicate, findings& found);
void check_selection(const json::value& predicate, findings& found);
void check_answer(const json::value& predicate, findings& found);
void check_gates(const json::value& predicate, findings& found);

// files.cpp: whether the files that it names are those that are here.
void check_plugins(const json::value& predicate, findings& found);
void check_model(const json::value& predicate, const std::filesystem::path& model, findings& found);

}  // namespace bitnet::receipt
