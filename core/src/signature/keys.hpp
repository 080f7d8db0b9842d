#pragma once
// Verifies who signed: a public key, or a certificate with a chain to a trusted one.
//
// Keys     ECDSA on P-256, P-384 and P-521, with SHA-256, SHA-384 and SHA-512.
// Errors   BITNET_INVALID_ARGUMENT for the user's keys, BITNET_REJECTED for the bundle's.
// Hostile  any bytes are safe to give: tests/fuzz/signature/keys_fuzz.cpp.

#include <string>

#include "base/result.hpp"
#include "signature/bundle.hpp"

namespace bitnet::signature {

// The signer.
struct signer {
  std::string key;          // SHA-256 of the public key in OpenSSL's PEM, hexadecimal
  std::string certificate;  // SHA-256 of its DER; "": a key signed
  std::string subject;      // of the certificate, "CN=..."; or ""
};

// Checks that the key in this PEM signed the bundle's payload.
[[nodiscard]] result<signer> verify_by_key(const bundle& of, const std::string& public_pem);

// Checks that the bundle's first certificate signed, and that the others lead from it to one in the
// PEM. Validity is checked at the time when the first certificate becomes valid, as the tools do:
// there is no trusted time of the signature.
[[nodiscard]] result<signer> verify_by_certificate(const bundle& of,
                                                   const std::string& trusted_pem);

}  // namespace bitnet::signature
