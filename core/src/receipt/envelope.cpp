#include "receipt/envelope.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "json/reading.hpp"
#include "plugin/trust/ed25519.hpp"
#include "receipt/base64.hpp"

namespace bitnet::receipt {
namespace {

// Token ids are the longest list in a receipt: twice a context of half a million.
constexpr json::bounds most{longest_receipt, 16, 1'200'000, 512};

// The first duplicate member name in the text, "" if none. The text is JSON within bounds.
std::string repeated_member(std::string_view text) {
  std::vector<std::set<std::string>> open;
  std::string repeated;
  using event = json::value::parse_event_t;
  const auto note = [&](int, event what, const json::value& found) {
    if (what == event::object_start) open.emplace_back();
    if (what == event::object_end) open.pop_back();
    if (what == event::key && !open.back().insert(found.get<std::string>()).second &&
        repeated.empty())
      repeated = found.get<std::string>();
    return true;
  };
  [[maybe_unused]] const json::value read = json::value::parse(text, note, false);
  return repeated;
}

result<std::string> text_of(const json::value& object, const char* name) {
  const json::value& found = json::member(object, name);
  if (found.is_string()) return found.get<std::string>();
  return bad_data(
      fmt::format("receipt: {}: expected a text, found {}", name, json::described(found)));
}

result<std::string> decoded(const json::value& object, const char* name) {
  const auto text = text_of(object, name);
  if (!text) return text;
  auto bytes = from_base64(*text);
  if (!bytes) return bad_data(fmt::format("receipt: {}: expected base64 with padding", name));
  return *std::move(bytes);
}

}  // namespace

result<json::value> read_object(std::string_view text, std::string_view what) {
  auto out = json::read(text, what, most);
  if (!out) return bad_data(std::move(out.error().message));
  if (!out->is_object())
    return bad_data(fmt::format("{}: expected an object, found {}", what, json::described(*out)));
  if (const std::string twice = repeated_member(text); !twice.empty())
    return bad_data(fmt::format("{}: the member '{}' is there twice", what, twice));
  return out;
}

std::string signed_bytes(std::string_view type, std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", type.size(), type, payload.size(), payload);
}

result<std::string> make_envelope(std::string_view payload, const std::string& private_pem) {
  json::value out = {{"payloadType", payload_type},
                     {"payload", to_base64(payload)},
                     {"signatures", json::value::array()}};
  if (!private_pem.empty()) {
    const auto made = plugin::sign_message(signed_bytes(payload_type, payload), private_pem);
    if (!made) return std::unexpected(made.error().as_failure());
    out["signatures"].push_back({{"keyid", made->key}, {"sig", to_base64(made->value)}});
  }
  return json::written(out) + "\n";
}

result<envelope> read_envelope(std::string_view text) {
  const auto from = read_object(text, "receipt");
  if (!from) return std::unexpected(from.error());
  envelope out;
  auto type = text_of(*from, "payloadType");
  if (!type) return std::unexpected(std::move(type.error()));
  out.payload_type = *std::move(type);
  auto payload = decoded(*from, "payload");
  if (!payload) return std::unexpected(std::move(payload.error()));
  out.payload = *std::move(payload);
  const json::value& signatures = json::member(*from, "signatures");
  if (!signatures.is_array() || signatures.size() > most_signatures)
    return bad_data(fmt::format("receipt: signatures: expected a list of at most {}, found {}",
                                most_signatures, json::described(signatures)));
  for (const json::value& one : signatures) {
    if (!one.is_object()) return bad_data("receipt: signatures: expected objects");
    auto value = decoded(one, "sig");
    if (!value) return std::unexpected(std::move(value.error()));
    const json::value& key = json::member(one, "keyid");
    out.signatures.push_back({key.is_string() ? key.get<std::string>() : "", *std::move(value)});
  }
  return out;
}

result<json::value> read_statement(std::string_view payload) {
  return read_object(payload, "payload");
}

}  // namespace bitnet::receipt
