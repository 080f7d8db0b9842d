#pragma once
// What the administrator or the user allows: which backends, and which signatures.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plugin/codes/codes.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

// "cpu", or "cpu@<id>" for one file only: 64 hexadecimal digits are its SHA-256 and nothing else,
// fewer its build id, which the author of a file may choose.
struct allowed_backend {
  std::string name, id;
};

struct policy {
  std::vector<allowed_backend> allowed;  // empty: every backend
  bool require_signature = false;
  std::filesystem::path trusted_keys = "/etc/bitnet/trusted.d";
  bool user_places = false;  // as root, too: see environment::user_places_refused()
};

// A comma list as in --allow-backends. BITNET_INVALID_ARGUMENT.
[[nodiscard]] result<std::vector<allowed_backend>> parse_allowed(std::string_view text);

// May a backend of this name be looked at? BN-T-NOT-ALLOWED (BITNET_UNAVAILABLE).
[[nodiscard]] checked<void> check_allowed(const policy& rules, const std::string& name);

// What a file says of itself, and its author may have made up.
struct file_claim {
  std::string name, build_id;  // build_id: hexadecimal, "" if it has none
};

// Is it a file that the policy allows? BN-T-NOT-ALLOWED, BN-T-HASH, BN-T-SIGNATURE, BN-T-KEY.
[[nodiscard]] checked<void> check_file(const policy& rules, const file_claim& claim,
                                       const trusted_file& file);

}  // namespace bitnet::plugin
