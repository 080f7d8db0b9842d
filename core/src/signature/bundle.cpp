#include "signature/bundle.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "json/reading.hpp"
#include "plugin/codes/text.hpp"
#include "receipt/base64.hpp"
#include "receipt/envelope.hpp"

namespace bitnet::signature {
namespace {

using json::member;
using json::value;

constexpr std::string_view media_type = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr std::string_view keyless =
    "it was signed without a key of its own, by Sigstore's service: to verify it needs the network "
    "and a root of trust that changes, which bitnet does not have; sign the model with a key or a "
    "certificate";

std::unexpected<failure> unlike(std::string_view field, std::string_view expected,
                                const value& found) {
  return reject(field, fmt::format("expected {}, found {}", expected, json::described(found)));
}

result<std::string> bytes_of(const value& object, const char* name, std::string_view field) {
  const value& found = member(object, name);
  if (!found.is_string()) return unlike(field, "base64", found);
  auto bytes = receipt::from_base64(found.get_ref<const std::string&>());
  if (!bytes || bytes->empty()) return reject(field, "expected base64 with padding, of some bytes");
  return *std::move(bytes);
}

result<void> check_text(const value& object, const char* name, std::string_view field,
                        std::string_view expected) {
  const value& found = member(object, name);
  if (found.is_string() && found.get_ref<const std::string&>() == expected) return {};
  return unlike(field, fmt::format("'{}'", expected), found);
}

result<void> add_certificates(const value& chain, bundle& to) {
  constexpr std::string_view field = "verificationMaterial.x509CertificateChain.certificates";
  if (!chain.is_object())
    return unlike("verificationMaterial.x509CertificateChain", "an object", chain);
  const value& all = member(chain, "certificates");
  if (!all.is_array() || all.empty() || all.size() > most_certificates)
    return unlike(field, fmt::format("a list of 1 to {}", most_certificates), all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string which = fmt::format("{}[{}].rawBytes", field, i);
    if (!all[i].is_object()) return unlike(which, "an object", all[i]);
    auto der = bytes_of(all[i], "rawBytes", which);
    if (!der) return std::unexpected(std::move(der.error()));
    if (der->size() > longest_certificate)
      return reject(which, fmt::format("expected at most {} bytes, found {}", longest_certificate,
                                       der->size()));
    to.certificates.push_back(*std::move(der));
  }
  return {};
}

// Adds the hint of the key, or the certificates.
result<void> add_material(const value& from, bundle& to) {
  constexpr std::string_view field = "verificationMaterial";
  if (!from.is_object()) return unlike(field, "an object", from);
  if (from.contains("certificate"))
    return reject("verificationMaterial.certificate", std::string(keyless));
  if (const value& log = member(from, "tlogEntries");
      !log.is_null() && !(log.is_array() && log.empty()))
    return reject("verificationMaterial.tlogEntries", std::string(keyless));
  if (from.contains("x509CertificateChain")) {
    if (from.contains("publicKey"))
      return reject(field, "expected publicKey or x509CertificateChain, found both");
    return add_certificates(member(from, "x509CertificateChain"), to);
  }
  const value& key = member(from, "publicKey");
  if (!key.is_object()) return unlike(field, "publicKey or x509CertificateChain in it", from);
  const value& hint = member(key, "hint");
  if (hint.is_string())
    to.key_hint = hint.get<std::string>();
  else if (!hint.is_null())
    return unlike("verificationMaterial.publicKey.hint", "a text", hint);
  return {};
}

result<void> add_envelope(const value& from, bundle& to) {
  if (!from.is_object()) return unlike("dsseEnvelope", "an object", from);
  if (auto ok = check_text(from, "payloadType", "dsseEnvelope.payloadType", receipt::payload_type);
      !ok)
    return ok;
  auto payload = bytes_of(from, "payload", "dsseEnvelope.payload");
  if (!payload) return std::unexpected(std::move(payload.error()));
  const value& all = member(from, "signatures");
  if (!all.is_array() || all.size() != 1 || !all[0].is_object())
    return unlike("dsseEnvelope.signatures", "a list of one object", all);
  auto made = bytes_of(all[0], "sig", "dsseEnvelope.signatures[0].sig");
  if (!made) return std::unexpected(std::move(made.error()));
  to.payload = *std::move(payload);
  to.signature = *std::move(made);
  return {};
}

}  // namespace

std::unexpected<failure> reject(std::string_view field, const std::string& why) {
  return std::unexpected(failure{BITNET_REJECTED, fmt::format("{}: {}", field, why), {domain, 0}});
}

result<bundle> read_bundle(std::string_view text) {
  const auto from = receipt::read_object(text, "the file");
  if (!from)
    return reject("mediaType", from.error().message +
                                   "; expected a Sigstore bundle in JSON, as OpenSSF's "
                                   "model_signing writes it");
  bundle out;
  if (auto ok = check_text(*from, "mediaType", "mediaType", media_type); !ok)
    return std::unexpected(std::move(ok.error()));
  if (from->contains("messageSignature"))
    return reject("messageSignature", "expected dsseEnvelope: this is no signature of a model");
  if (auto ok = add_material(member(*from, "verificationMaterial"), out); !ok)
    return std::unexpected(std::move(ok.error()));
  if (auto ok = add_envelope(member(*from, "dsseEnvelope"), out); !ok)
    return std::unexpected(std::move(ok.error()));
  return out;
}

}  // namespace bitnet::signature
