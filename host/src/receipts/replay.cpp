#include "receipts/replay.hpp"

#include <fmt/format.h>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "basic/json.hpp"
#include "library/kv_types.hpp"
#include "session/generation.hpp"
#include "tables/sampling.hpp"
#include "text/json_members.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using text::at;
using text::text_at;

// Allowed difference of logits between devices or forms of a kernel, relative to the largest; a
// reload has the same limit (bitnet_reload_options).
constexpr float logit_tolerance = 1.0F / 1024;

uint64_t count_at(const json& object, const char* key) {
  const json& x = at(object, key);
  return x.is_number_unsigned() ? x.get<uint64_t>() : 0;
}

token_list ids_at(const json& object, const char* key) {
  token_list out;
  for (const json& id : list_of(object, key)) out.push_back(id.get<bitnet_token>());
  return out;
}

std::string bytes_of(const std::string& digits) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out += static_cast<char>(digit(digits[i]) * 16 + digit(digits[i + 1]));
  return out;
}

// docs/reference/receipts.md#sums-of-tokens
std::string salted_sum(const json& predicate, const char* what, const token_list& ids) {
  std::string text = bytes_of(text_at(predicate, "salt")) + what + "\n";
  for (const bitnet_token id : ids)
    for (unsigned shift = 0; shift < 32; shift += 8)
      text += static_cast<char>(static_cast<uint32_t>(id) >> shift & 0xFFU);
  std::array<unsigned char, 32> sum{};
  EVP_Digest(text.data(), text.size(), sum.data(), nullptr, EVP_sha256(), nullptr);
  std::string out;
  for (const unsigned char byte : sum) out += fmt::format("{:02x}", byte);
  return out;
}

// ---- the parameters of the receipt --------------------------------------------------------------

uint32_t small_at(const json& object, const char* key) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(count_at(object, key), std::numeric_limits<uint32_t>::max()));
}

bitnet_session_options session_of(const json& predicate) {
  bitnet_session_options out{};
  bitnet_session_defaults(&out, sizeof out);
  const json& batch = at(predicate, "batch");
  const json& kv = at(predicate, "kv");
  out.n_context = small_at(batch, "n_context");
  out.n_batch = small_at(batch, "n_batch");
  out.kv_k = kv_type_named(text_at(kv, "dtype_k")).id;
  out.kv_v = kv_type_named(text_at(kv, "dtype_v")).id;
  out.window = small_at(kv, "window");
  out.window_keep = small_at(kv, "keep");
  out.low_memory = text::true_at(kv, "low_memory") ? 1 : 0;
  out.deterministic = text::true_at(predicate, "deterministic") ? 1 : 0;
  const std::string precision = text_at(predicate, "precision");
  out.precision = precision == "f16"    ? BITNET_PRODUCTS_F16
                  : precision == "bf16" ? BITNET_PRODUCTS_BF16
                                        : BITNET_PRODUCTS_F32;
  return out;
}

// Owns what bitnet_sampling points to, so it must not move.
struct sampling_of_receipt {
  bitnet_sampling values{};
  std::vector<bitnet_logit_bias> biases{};
  std::vector<std::string> breakers{};
  std::vector<bitnet_str> breaker_views{};

  explicit sampling_of_receipt(const json& predicate) {
    bitnet_sampling_defaults(&values, sizeof values);
    const json& from = at(predicate, "sampling");
    const auto take = [&](const char* key, auto& to) {
      if (const json& x = at(from, key); x.is_number())
        to = x.template get<std::remove_reference_t<decltype(to)>>();
    };
#define BITNET_REPLAY_PARAMETER(type, name, ...) take(#name, values.name);
    BITNET_SAMPLING_PARAMETERS(BITNET_REPLAY_PARAMETER)
#undef BITNET_REPLAY_PARAMETER
    values.seed = small_at(predicate, "seed");
    values.ignore_eos = text::true_at(from, "ignore_eos") ? 1 : 0;
    for (const json& one : list_of(from, "logit_bias")) {
      const json& bias = at(one, "bias");  // null: the token is forbidden
      biases.push_back(
          {static_cast<bitnet_token>(count_at(one, "token")),
           bias.is_number() ? bias.get<float>() : -std::numeric_limits<float>::infinity()});
    }
    for (const json& one : list_of(from, "dry_breakers"))
      breakers.push_back(one.get<std::string>());
    for (const std::string& one : breakers) breaker_views.push_back({one.data(), one.size()});
    values.logit_bias = biases.data();
    values.n_logit_bias = static_cast<uint32_t>(biases.size());
    values.dry_breakers = breaker_views.data();
    values.n_dry_breakers = static_cast<uint32_t>(breaker_views.size());
  }
};

// Why the answer cannot be generated again; "": it can.
std::string obstacle(const json& predicate, const token_list& prompt) {
  const json& bounds = at(predicate, "constraints");
  for (const char* form : {"grammar_sha256", "json_schema_sha256"})
    if (bounds.contains(form)) return "the answer was kept to a form, which a receipt has not";
  if (const json& budget = at(bounds, "reasoning_budget"); budget.is_number() && budget != -1)
    return "its thinking was bounded by a text, which a receipt has not";
  if (prompt.empty())
    return "its prompt is not known: give it with -p, -f or --ids, or ask for receipts with "
           "--receipt-tokens";
  if (salted_sum(predicate, "prompt", prompt) != text_at(predicate, "prompt_sha256"))
    return fmt::format(
        "the prompt is another one: its {} tokens have another sum than the {} of "
        "the receipt",
        prompt.size(), count_at(at(predicate, "prompt"), "tokens"));
  return "";
}

// ---- computing and comparing -------------------------------------------------------------------

result<token_list> computed_again(bitnet_session* session, const json& predicate,
                                  const token_list& prompt) {
  const sampling_of_receipt sampling(predicate);
  bitnet_generation how{};
  bitnet_generation_defaults(&how, sizeof how);
  how.max_tokens = static_cast<int32_t>(count_at(predicate, "tokens_generated"));
  how.sampling = &sampling.values;
  return generated_ids(session, prompt, how);
}

// Whether the logits of two tokens after `before` differ by no more than the tolerance.
result<bool> is_near_tie(bitnet_session* session, const token_list& before, bitnet_token a,
                         bitnet_token b, uint32_t n_vocab) {
  library_error err;
  bitnet_status status = bitnet_session_truncate(session, 0, &err);
  std::vector<float> logits(n_vocab);
  if (status == BITNET_OK)
    status = bitnet_session_eval(session, before.data(), before.size(), 0, logits.data(),
                                 logits.size(), &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  const auto in_vocabulary = [&](bitnet_token id) {
    return id >= 0 && static_cast<uint32_t>(id) < n_vocab;
  };
  if (!in_vocabulary(a) || !in_vocabulary(b)) return false;
  float largest = 0;
  for (const float x : logits) largest = std::max(largest, std::abs(x));
  const float apart =
      std::abs(logits[static_cast<std::size_t>(a)] - logits[static_cast<std::size_t>(b)]);
  return apart <= 2 * logit_tolerance * largest;  // each may be off by one tolerance
}

std::string places_in(const json& report, const char* list) {
  std::string out;
  for (const json& one : list_of(report, list))
    out += (out.empty() ? "" : ", ") + member(one, "device");
  return out;
}

// The tokens differ. In a greedy answer a near tie explains that, at any place.
result<replay> explain(bitnet_session* session, const json& predicate, const token_list& prompt,
                       const token_list& was, const token_list& is, uint32_t n_vocab) {
  replay out;
  if (was.empty()) {
    out.verdict = replay_verdict::different;
    out.why = "the sums of the answers differ; where, only receipts with tokens can say";
    return out;
  }
  const auto [mine, theirs] = std::ranges::mismatch(was, is);
  const auto place = static_cast<std::size_t>(mine - was.begin());
  out.first_different = place;
  out.was = mine == was.end() ? -1 : *mine;
  out.is = theirs == is.end() ? -1 : *theirs;
  out.verdict = replay_verdict::different;
  out.why = fmt::format("token {} was {} and is {}", place, out.was, out.is);
  const json& temperature = at(at(predicate, "sampling"), "temperature");
  const bool is_greedy = temperature.is_number() && temperature.get<double>() <= 0;
  if (!is_greedy) return out;
  token_list before = prompt;
  before.insert(before.end(), was.begin(), mine);
  auto tie = is_near_tie(session, before, out.was, out.is, n_vocab);
  if (!tie) return std::unexpected(tie.error());
  if (*tie) {
    out.verdict = replay_verdict::within_tolerance;
    out.why += fmt::format(", whose logits are within {:.4f} of the largest", 2 * logit_tolerance);
  }
  return out;
}

// A device with another order of sums may sample other tokens. Whether that explains the difference
// is unknown, so the answers are not comparable.
void consider_places(const json& predicate, bitnet_session* session, replay& found) {
  if (found.verdict != replay_verdict::different) return;
  const auto report = session_report(session);
  const std::string here = report ? places_in(*report, "parts") : "";
  const std::string there = places_in(predicate, "parts");
  if (here == there) return;
  found.verdict = replay_verdict::not_comparable;
  found.why += fmt::format("; it was computed on {}, and now on {}", there, here);
}

}  // namespace

const char* name_of(replay_verdict v) {
  switch (v) {
    case replay_verdict::byte_equal:
      return "byte-equal";
    case replay_verdict::within_tolerance:
      return "equal within the tolerance";
    case replay_verdict::different:
      return "different";
    case replay_verdict::not_comparable:
      break;
  }
  return "not comparable";
}

result<replay> replay_receipt(const invocation& in, const json& predicate, const std::string& file,
                              const std::optional<token_list>& prompt) {
  const token_list known = prompt ? *prompt : ids_at(at(predicate, "prompt"), "ids");
  replay out;
  if (out.why = obstacle(predicate, known); !out.why.empty()) return out;
  if (count_at(predicate, "tokens_generated") > std::numeric_limits<int32_t>::max())
    return fail(exit_code::usage, "the receipt says that it has more tokens than a text can have");
  const bitnet_session_options options = session_of(predicate);
  const auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  const auto model = open_model(in, runtime->get(), file, options.n_context);
  if (!model) return std::unexpected(model.error());
  library_error err;
  bitnet_session* opened = nullptr;
  const bitnet_status status = bitnet_session_open(model->get(), &options, &opened, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  const session_handle session(opened);
  const auto again = computed_again(opened, predicate, known);
  if (!again) return std::unexpected(again.error());
  if (salted_sum(predicate, "output", *again) == text_at(predicate, "output_token_sha256")) {
    out.verdict = replay_verdict::byte_equal;
    return out;
  }
  auto found = explain(opened, predicate, known, ids_at(at(predicate, "output"), "ids"), *again,
                       describe(model->get()).n_vocab);
  if (found) consider_places(predicate, opened, *found);
  return found;
}

}  // namespace bitnet::host
