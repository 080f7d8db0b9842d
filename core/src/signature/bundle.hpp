#pragma once
// Parses a Sigstore bundle, v0.3, with a DSSE envelope: the signature file of OpenSSF's tools.
//
// Source  https://github.com/ossf/model-signing-spec, and https://docs.sigstore.dev/about/bundle
// Errors  BITNET_REJECTED, beginning with the path of the field: "dsseEnvelope.payloadType: ...".
// Hostile any bytes are safe to read: tests/fuzz/signature/bundle_fuzz.cpp. Bounds below.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::signature {

inline constexpr std::size_t longest_bundle = std::size_t{16} << 20;  // bytes of the file
inline constexpr std::size_t most_certificates = 16;
inline constexpr std::size_t longest_certificate = std::size_t{64} << 10;  // bytes of DER

struct bundle {
  std::string payload;    // the signed bytes, together with payload_type
  std::string signature;  // DER-encoded ECDSA
  std::string key_hint;   // SHA-256 of the key's PEM from the bundle, not verified; "": none
  std::vector<std::string> certificates;  // DER, the signer's first; empty: a key signed
};

[[nodiscard]] result<bundle> read_bundle(std::string_view text);

// The origin of each rejection, for bitnet_error.
inline constexpr const char* domain = "signature";

// The failure for a field: "predicate.resources[0].digest: expected ..., found ...; ...".
[[nodiscard]] std::unexpected<failure> reject(std::string_view field, const std::string& why);

}  // namespace bitnet::signature
