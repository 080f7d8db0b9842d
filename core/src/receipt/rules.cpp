#include "receipt/rules.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "json/reading.hpp"
#include "plugin/trust/ed25519.hpp"
#include "receipt/derived.hpp"
#include "receipt/envelope.hpp"

namespace bitnet::receipt {
namespace {

using level = finding::level_type;

void reject(findings& found, const char* rule, std::string field, std::string text) {
  found.push_back({level::error, rule, std::move(field), std::move(text)});
}

// One valid signature of a trusted signer is enough; a failure describes the first signature.
void check_signatures(const envelope& e, const question& asked, verdict& out) {
  if (e.signatures.empty()) {
    out.found.push_back({asked.allow_unsigned ? level::note : level::error, "signature",
                         "signatures", "there is none: the receipt is not signed"});
    return;
  }
  const std::string message = signed_bytes(e.payload_type, e.payload);
  for (const envelope::signature& one : e.signatures)
    for (const trusted_signer& signer : asked.signers)
      if (signer.key == one.key && plugin::is_signed_by(message, signer.key, one.value)) {
        out.signed_by = signer.name;
        return;
      }
  const envelope::signature& first = e.signatures.front();
  const bool is_known = std::ranges::any_of(
      asked.signers, [&](const trusted_signer& s) { return s.key == first.key; });
  if (is_known)
    reject(out.found, "signature", "signatures[0].sig",
           "it does not fit the payload and its key: one of them was altered");
  else if (!plugin::is_hexadecimal(first.key, plugin::key_bytes))
    reject(out.found, "signature", "signatures[0].keyid",
           "expected the public key, 64 hexadecimal digits in lower case");
  else
    reject(out.found, "signature", "signatures[0].keyid",
           fmt::format("made with the key {}, which is none of the {} trusted ones", first.key,
                       asked.signers.size()));
}

// Checks in-toto's frame around the predicate; false if there is no predicate to judge.
bool check_frame(const envelope& e, const json::value& statement, findings& found) {
  const auto expect = [&](const char* field, const std::string& is, std::string_view wanted) {
    if (is != wanted)
      reject(found, "statement", field, fmt::format("expected {}, found '{}'", wanted, is));
  };
  expect("payloadType", e.payload_type, payload_type);
  expect("_type", text_in(statement, "_type"), statement_type);
  expect("predicateType", text_in(statement, "predicateType"), predicate_type);
  if (!found.empty() && found.back().rule == "statement") return false;
  if (json::member(statement, "predicate").is_object()) return true;
  reject(found, "statement", "predicate", "expected an object");
  return false;
}

// Checks that the statement's subject is the predicate's model.
void check_subject(const json::value& statement, const json::value& predicate, findings& found) {
  const json::value& model = json::member(predicate, "model");
  const json::value& subject = json::member(statement, "subject");
  if (!model.is_object()) {
    if (!subject.is_array() || subject.size() != 1)
      reject(found, "subject", "subject", "expected the receipt alone, as there is no model");
    return;
  }
  const json::value& files = json::member(model, "files");
  if (files.empty()) {
    reject(found, "subject", "model.files", "expected at least one file");
    return;
  }
  if (text_in(model, "digest") != model_sum(files))
    reject(found, "subject", "model.digest", "it does not follow from the sums of the files");
  if (text_in(predicate, "model_sha") != text_in(files.front(), "sha256"))
    reject(found, "subject", "model_sha", "it is not the sum of the model's first file");
  const json::value wanted = subject_of(model);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!subject.is_array() || i >= subject.size() || subject[i] != wanted[i]) {
      reject(found, "subject", fmt::format("subject[{}]", i),
             "it is not the model that the predicate names");
      return;
    }
  if (subject.size() != wanted.size())
    reject(found, "subject", fmt::format("subject[{}]", wanted.size()),
           "it names more than the predicate does");
}

void check_wishes(const json::value& predicate, const question& asked, findings& found) {
  const json::value& rows = json::member(predicate, "kernel_stats");
  if (asked.gpu_kernels) {
    const json::value& devices = json::member(predicate, "devices");
    const bool any = std::ranges::any_of(rows, [&](const json::value& row) {
      const uint64_t place = count_in(row, "place");
      return place < devices.size() && text_in(devices[place], "class") == "gpu";
    });
    if (!any)
      found.push_back({level::gate, "gpu-kernels", "kernel_stats",
                       "no kernel ran on a device of class gpu; a driver in software is none"});
  }
  if (!asked.fused_percent) return;
  const double is =
      coverage_of(rows, text_in(json::member(predicate, "selection"), "device")).fused_percent();
  if (is < *asked.fused_percent)
    found.push_back({level::gate, "fused", "coverage.fused",
                     fmt::format("{:.1f} % of the calls were of fused kernels, expected {} %", is,
                                 *asked.fused_percent)});
}

}  // namespace

bool verdict::is_valid() const {
  return std::ranges::none_of(found, [](const finding& f) { return f.level == level::error; });
}

bool verdict::gates_pass() const {
  return std::ranges::none_of(found, [](const finding& f) { return f.level == level::gate; });
}

result<verdict> judge(std::string_view text, const question& asked) {
  const auto e = read_envelope(text);
  if (!e) return std::unexpected(e.error());
  auto statement = read_statement(e->payload);
  if (!statement) return std::unexpected(std::move(statement.error()));
  verdict out;
  out.statement = *std::move(statement);
  check_signatures(*e, asked, out);
  if (!check_frame(*e, out.statement, out.found)) return out;
  const json::value& predicate = json::member(out.statement, "predicate");
  const std::size_t before = out.found.size();
  check_shape(predicate, out.found);
  if (out.found.size() != before) return out;
  check_subject(out.statement, predicate, out.found);
  check_counters(predicate, out.found);
  check_selection(predicate, out.found);
  check_answer(predicate, out.found);
  check_gates(predicate, out.found);
  if (asked.look_at_plugins) check_plugins(predicate, out.found);
  if (asked.model) check_model(predicate, *asked.model, out.found);
  check_wishes(predicate, asked, out.found);
  return out;
}

}  // namespace bitnet::receipt
