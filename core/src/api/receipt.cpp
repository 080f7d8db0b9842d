// Receipts: the C calls that make and judge them.
#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/edge.hpp"
#include "api/receipt_facts.hpp"
#include "base/environment.hpp"
#include "json/reading.hpp"
#include "plugin/trust/signature.hpp"
#include "receipt/derived.hpp"
#include "receipt/envelope.hpp"
#include "receipt/own_key.hpp"
#include "receipt/rules.hpp"

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;
using bitnet::json::value;

// The private key that signs, "" for none.
bitnet::result<std::string> signing_key(const char* file) {
  if (file != nullptr && *file == '\0') return std::string();
  if (file == nullptr) {
    const std::filesystem::path folder = bitnet::environment::receipt_keys();
    if (folder.empty())
      return bitnet::fail(BITNET_NOT_FOUND,
                          "there is no folder for the key of receipts: HOME is not set, or the "
                          "process has raised privileges; name a key");
    return bitnet::receipt::own_key(folder);
  }
  auto pem = bitnet::plugin::read_private_key(file);
  if (pem) return *std::move(pem);
  return std::unexpected(bitnet::receipt::of_key(pem.error()));
}

// Members that the program may fill in, since the library leaves them empty.
bool is_programs(const std::string& name) {
  return name == "gates" || name == "gate_wall_time_ms" || name == "commit_sha";
}

bitnet::result<void> add_program_facts(value& to, bitnet_str facts) {
  if (facts.size == 0) return {};
  const auto given = bitnet::json::read(bitnet::api::view(facts), "facts");
  if (!given) return std::unexpected(given.error());
  if (!given->is_object()) return bitnet::json::rejected("facts", "an object", *given);
  for (const auto& [name, what] : given->items()) {
    if (to.contains(name) && !is_programs(name))
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          fmt::format("facts.{}: the library writes this member", name));
    to[name] = what;
  }
  return {};
}

// Makes the receipt from facts of valid form.
bitnet::result<std::string> receipt_text(value facts, const bitnet_receipt_options& o) {
  if (auto ok = add_program_facts(facts, o.facts); !ok)
    return std::unexpected(std::move(ok.error()));
  bitnet::receipt::findings wrong;
  bitnet::receipt::check_shape(facts, wrong);
  if (!wrong.empty())
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        fmt::format("facts.{}: {}", wrong[0].field, wrong[0].text));
  const value& model = bitnet::json::member(facts, "model");
  value statement = {{"_type", bitnet::receipt::statement_type}};
  // in-toto requires a subject with a digest: without a model, the run itself is the subject.
  statement["subject"] =
      model.is_object()
          ? bitnet::receipt::subject_of(model)
          : value({{{"name", "receipt"}, {"digest", {{"receiptId", facts["receipt_id"]}}}}});
  statement["predicateType"] = bitnet::receipt::predicate_type;
  statement["predicate"] = std::move(facts);
  std::string payload = bitnet::json::written(statement);
  if (o.statement_only != 0) return payload;
  const auto key = signing_key(o.key_file);
  if (!key) return key;
  return bitnet::receipt::make_envelope(payload, *key);
}

// ---- judging -----------------------------------------------------------------------------------

bitnet::result<std::vector<bitnet::receipt::trusted_signer>> signers_of(
    const bitnet_receipt_check& c) {
  std::vector<bitnet::receipt::trusted_signer> out;
  const std::filesystem::path own = bitnet::environment::receipt_keys();
  const std::filesystem::path file = c.key_file != nullptr ? c.key_file
                                     : own.empty()         ? own
                                                           : bitnet::receipt::keys_in(own).open;
  if (!file.empty()) {
    auto key = bitnet::receipt::public_key_in(file);
    if (!key && (c.key_file != nullptr || key.error().status != BITNET_NOT_FOUND))
      return std::unexpected(std::move(key.error()));
    if (key) out.push_back({*std::move(key), file.string()});
  }
  if (c.trusted_keys == nullptr) return out;
  const auto keys = bitnet::plugin::read_trusted_keys(c.trusted_keys);
  if (!keys) return std::unexpected(keys.error().as_failure());
  for (const auto& one : *keys) out.push_back({one.key, one.name});
  return out;
}

bitnet::result<bitnet::receipt::question> question_of(const bitnet_receipt_check& c) {
  auto signers = signers_of(c);
  if (!signers) return std::unexpected(std::move(signers.error()));
  if (!(c.require_fused >= 0 && c.require_fused <= 100))
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        fmt::format("require_fused: expected 0 to 100 per cent, found {}; give 0 "
                                    "to allow any share of fused kernels",
                                    c.require_fused));
  bitnet::receipt::question out;
  out.allow_unsigned = c.allow_unsigned != 0;
  out.signers = *std::move(signers);
  out.look_at_plugins = c.skip_plugins == 0;
  if (c.model != nullptr) out.model = c.model;
  out.gpu_kernels = c.require_gpu_kernels != 0;
  if (c.require_fused > 0) out.fused_percent = static_cast<double>(c.require_fused);
  return out;
}

std::string verdict_text(const bitnet::receipt::verdict& v) {
  using level = bitnet::receipt::finding::level_type;
  value out = {{"valid", v.is_valid()}, {"gates_passed", v.gates_pass()}};
  if (!v.signed_by.empty()) out["signed_by"] = v.signed_by;
  out["findings"] = value::array();
  for (const bitnet::receipt::finding& f : v.found)
    out["findings"].push_back({{"level", f.level == level::error  ? "error"
                                         : f.level == level::gate ? "gate"
                                                                  : "note"},
                               {"rule", f.rule},
                               {"field", f.field},
                               {"text", f.text}});
  if (!v.statement.is_null()) out["statement"] = v.statement;
  return bitnet::json::written(out);
}

}  // namespace

void bitnet_receipt_defaults(bitnet_receipt_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_session_receipt(bitnet_session* session, const bitnet_receipt_options* options,
                                     char* out, uint64_t capacity, uint64_t* needed,
                                     bitnet_error* err) {
  return guarded(err, "bitnet_session_receipt", [&]() -> bitnet::result<void> {
    if (session == nullptr) return missing("session");
    const auto taken = bitnet::api::take_options(options, bitnet_receipt_defaults);
    if (!taken) return std::unexpected(taken.error());
    const auto guard = bitnet::api::call_guard<bitnet_session>::take(*session, "session");
    if (!guard) return std::unexpected(guard.error());
    return bitnet::api::give_changing_text(
        fmt::format("receipt of session {}", static_cast<const void*>(session)), out, capacity,
        needed, [&]() -> bitnet::result<std::string> {
          auto facts = bitnet::api::session_facts(*session, taken->with_tokens != 0);
          if (!facts) return std::unexpected(std::move(facts.error()));
          return receipt_text(*std::move(facts), *taken);
        });
  });
}

bitnet_status bitnet_request_receipt(bitnet_request* request, uint32_t choice,
                                     const bitnet_receipt_options* options, char* out,
                                     uint64_t capacity, uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_request_receipt", [&]() -> bitnet::result<void> {
    if (request == nullptr) return missing("request");
    const auto taken = bitnet::api::take_options(options, bitnet_receipt_defaults);
    if (!taken) return std::unexpected(taken.error());
    return bitnet::api::give_changing_text(
        fmt::format("receipt of request {} {}", static_cast<const void*>(request), choice), out,
        capacity, needed, [&]() -> bitnet::result<std::string> {
          auto facts = bitnet::api::request_facts(*request, choice, taken->with_tokens != 0);
          if (!facts) return std::unexpected(std::move(facts.error()));
          return receipt_text(*std::move(facts), *taken);
        });
  });
}

bitnet_status bitnet_runtime_receipt(bitnet_runtime* runtime, bitnet_status status,
                                     const char* message, const bitnet_receipt_options* options,
                                     char* out, uint64_t capacity, uint64_t* needed,
                                     bitnet_error* err) {
  return guarded(err, "bitnet_runtime_receipt", [&]() -> bitnet::result<void> {
    if (runtime == nullptr || message == nullptr) return missing("runtime or message");
    if (status == BITNET_OK)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          "status is BITNET_OK: such a receipt is of a run that failed");
    const auto taken = bitnet::api::take_options(options, bitnet_receipt_defaults);
    if (!taken) return std::unexpected(taken.error());
    return bitnet::api::give_changing_text(
        fmt::format("receipt of runtime {}", static_cast<const void*>(runtime)), out, capacity,
        needed, [&] {
          return receipt_text(bitnet::api::failed_facts(*runtime, {status, message}), *taken);
        });
  });
}

void bitnet_receipt_check_defaults(bitnet_receipt_check* check, uint32_t size) {
  bitnet::api::give_defaults({}, check, size);
}

bitnet_status bitnet_receipt_verify(bitnet_str receipt, const bitnet_receipt_check* check,
                                    char* out, uint64_t capacity, uint64_t* needed,
                                    bitnet_error* err) {
  return guarded(err, "bitnet_receipt_verify", [&]() -> bitnet::result<void> {
    if (receipt.data == nullptr && receipt.size != 0) return missing("receipt");
    const auto taken = bitnet::api::take_options(check, bitnet_receipt_check_defaults);
    if (!taken) return std::unexpected(taken.error());
    const auto asked = question_of(*taken);
    if (!asked) return std::unexpected(asked.error());
    return bitnet::api::give_changing_text(
        fmt::format("verdict of {} {}", receipt.size, static_cast<const void*>(receipt.data)), out,
        capacity, needed, [&]() -> bitnet::result<std::string> {
          const auto judged = bitnet::receipt::judge(bitnet::api::view(receipt), *asked);
          if (!judged) return std::unexpected(judged.error());
          return verdict_text(*judged);
        });
  });
}
