#pragma once
// Whose a signature is: of a public key, or of a certificate that leads to one that is trusted.
//
// Keys     ECDSA on P-256, P-384 and P-521, with SHA-256, SHA-384 and SHA-512.
// Errors   BITNET_INVALID_ARGUMENT for what the user gave, BITNET_REJECTED for what the bundle has.
// Hostile  any bytes are safe to give: tests/fuzz/signature/keys_fuzz.cpp.

#include <string>

#include "base/result.hpp"
#include "signature/bundle.hpp"

namespace bitnet::signature {

// Who signed.
struct signer {
  std::string key;          // SHA-256 of the public key's PEM as OpenSSL writes it, hexadecimal
  std::string certificate;  // SHA-256 of its DER; "": signed by a key alone
  std::string subject;      // of the certificate, "CN=..."; "" likewise
};

// Whether the key in this PEM signed the bundle's payload.
[[nodiscard]] result<signer> verify_by_key(const bundle& of, const std::string& public_pem);

// Whether the bundle's first certificate did, and leads to one of the PEM by the others. What is
// valid is judged at the time from which on that certificate is valid, as the tools do: nothing
// that can be trusted says when the signature was made.
[[nodiscard]] result<signer> verify_by_certificate(const bundle& of,
                                                   const std::string& trusted_pem);

}  // namespace bitnet::signature
