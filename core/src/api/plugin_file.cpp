#include <nlohmann/json.hpp>
#include <utility>

#include "api/edge.hpp"
#include "plugin/inspection/lint.hpp"
#include "plugin/trust/policy.hpp"
#include "plugin/trust/signature.hpp"

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;
using nlohmann::ordered_json;

constexpr const char* level_names[] = {"ok", "warning", "error"};

// Replaces invalid UTF-8, which paths may contain.
void hand_over(const ordered_json& text, void (*report)(void*, bitnet_str), void* user) {
  const std::string dumped = text.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (report != nullptr) report(user, {dumped.data(), dumped.size()});
}

bitnet::failure failure_of(const bitnet::plugin::defect& d) {
  return bitnet::plugin::failure_of_named(d, "name a plugin's shared object", d.status);
}

ordered_json to_json(const char* file, const bitnet::plugin::lint_result& result) {
  using level = bitnet::plugin::finding::level_type;
  const bitnet::plugin::identity& note = result.facts.note;
  ordered_json out = {{"file", file}, {"bytes", result.size_bytes}};
  for (const auto& [key, text] : {std::pair("name", note.name),
                                  {"version", note.version},
                                  {"vendor", note.vendor},
                                  {"license", note.license},
                                  {"abi", note.abi},
                                  {"build_id", result.facts.build_id}})
    if (!text.empty()) out[key] = text;
  uint64_t errors = 0;
  uint64_t warnings = 0;
  ordered_json findings = ordered_json::array();
  for (const bitnet::plugin::finding& one : result.found.all()) {
    errors += one.level == level::error ? 1 : 0;
    warnings += one.level == level::warning ? 1 : 0;
    ordered_json& row = findings.emplace_back();
    row["check"] = one.check;
    row["level"] = level_names[static_cast<std::size_t>(one.level)];
    row["code"] = bitnet::plugin::code_text(one.what.code);
    row["text"] = one.what.reason;
    if (one.level != level::ok) row["hint"] = one.what.advice();
  }
  out["errors"] = errors;
  out["warnings"] = warnings;
  out["findings"] = std::move(findings);
  return out;
}

}  // namespace

bitnet_status bitnet_backend_lint(const char* file, const char* manifest,
                                  void (*report)(void* user, bitnet_str text), void* report_user,
                                  bitnet_error* err) {
  return guarded(err, "bitnet_backend_lint", [&]() -> bitnet::result<void> {
    if (file == nullptr) return missing("file");
    const auto found = bitnet::plugin::lint(file, manifest == nullptr ? "" : manifest);
    if (!found) return std::unexpected(failure_of(found.error()));
    hand_over(to_json(file, *found), report, report_user);
    return {};
  });
}

bitnet_status bitnet_backend_sign(const char* file, const char* key_file, bitnet_error* err) {
  return guarded(err, "bitnet_backend_sign", [&]() -> bitnet::result<void> {
    if (file == nullptr || key_file == nullptr) return missing("file or key_file");
    const auto written = bitnet::plugin::sign_file(file, key_file);
    if (!written) return std::unexpected(failure_of(written.error()));
    return {};
  });
}

bitnet_status bitnet_backend_verify(const char* file, const char* trusted_keys,
                                    void (*report)(void* user, bitnet_str text), void* report_user,
                                    bitnet_error* err) {
  return guarded(err, "bitnet_backend_verify", [&]() -> bitnet::result<void> {
    if (file == nullptr) return missing("file");
    const auto opened = bitnet::plugin::open_trusted(file);
    if (!opened) return std::unexpected(failure_of(opened.error()));
    const auto by = bitnet::plugin::verify_file(
        *opened, trusted_keys == nullptr ? bitnet::plugin::policy().trusted_keys : trusted_keys);
    if (!by) return std::unexpected(failure_of(by.error()));
    hand_over({{"file", file}, {"key", by->key}, {"key_file", by->name}}, report, report_user);
    return {};
  });
}
