#pragma once
// A receipt as a file: an in-toto Statement v1 in a DSSE envelope, signed with ed25519.
//
// Source  https://github.com/secure-systems-lab/dsse, its pages on protocol and envelope. A key's
//         id is its public half in hexadecimal digits.
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
    std::string key;    // as in the envelope, not verified
    std::string value;  // bytes
  };
  std::vector<signature> signatures;
};

// The bytes to sign: DSSE's pre-authentication encoding.
[[nodiscard]] std::string signed_bytes(std::string_view type, std::string_view payload);

// Makes one JSON text with a line feed. `private_pem` "": without signature. BITNET_REJECTED for a
// key that cannot sign.
[[nodiscard]] result<std::string> make_envelope(std::string_view payload,
                                                const std::string& private_pem);

// BITNET_BAD_DATA for a text that is no envelope.
[[nodiscard]] result<envelope> read_envelope(std::string_view text);

// Parses a JSON object of at most longest_receipt bytes; `what`: its name in messages.
// BITNET_BAD_DATA for other texts and for duplicate members, which two readers could read
// differently.
[[nodiscard]] result<json::value> read_object(std::string_view text, std::string_view what);
// The same for a payload.
[[nodiscard]] result<json::value> read_statement(std::string_view payload);

}  // namespace bitnet::receipt
