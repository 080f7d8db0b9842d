#pragma once
// A receipt as a file: an in-toto Statement v1 in a DSSE envelope, signed with ed25519.
//
// Source  https://github.com/secure-systems-lab/dsse, its pages on protocol and envelope; the id of
//         a key is its public half in hexadecimal digits.
// Hostile any bytes are safe to read: tests/fuzz/receipt/envelope_fuzz.cpp. Bounds below.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

namespace bitnet::receipt {

inline constexpr std::size_t longest_receipt = std::size_t{16} << 20;  // bytes of the file
inline constexpr std::size_t most_signatures = 16;
inline constexpr std::string_view payload_type = "application/vnd.in-toto+json";

struct envelope {
  std::string payload_type;
  std::string payload;  // the bytes that are signed
  struct signature {
    std::string key;    // as the envelope says, not verified
    std::string value;  // bytes
  };
  std::vector<signature> signatures;
};

// What is signed: DSSE's pre-authentication encoding.
[[nodiscard]] std::string signed_bytes(std::string_view type, std::string_view payload);

// One JSON text with a line feed. `private_pem`: "" for none, then it has no signature.
// BITNET_REJECTED for a key that cannot sign.
[[nodiscard]] result<std::string> make_envelope(std::string_view payload,
                                                const std::string& private_pem);

// BITNET_BAD_DATA for what is no envelope.
[[nodiscard]] result<envelope> read_envelope(std::string_view text);

// The JSON object in a text of at most longest_receipt bytes, which messages call `what`.
// BITNET_BAD_DATA for another text, and for one with a member twice: two readers could take it for
// two things.
[[nodiscard]] result<json::value> read_object(std::string_view text, std::string_view what);
// The same of a payload.
[[nodiscard]] result<json::value> read_statement(std::string_view payload);

}  // namespace bitnet::receipt
