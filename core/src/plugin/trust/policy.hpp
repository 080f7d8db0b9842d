#pragma once
// What the administrator or the user permits: backends and signatures.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plugin/codes/codes.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

// "cpu", or "cpu@<id>" for one file only. 64 hexadecimal digits are a SHA-256, fewer a build id,
// which the author of a file can choose.
struct allowed_backend {
  std::string name, id;
};

struct policy {
  std::vector<allowed_backend> allowed;  // empty: every backend
  bool require_signature = false;
  std::filesystem::path trusted_keys = "/etc/bitnet/trusted.d";
  bool user_places = false;  // for root, too: see environment::user_places_rejected()
};

// Parses the comma list of --allow-backends. BITNET_INVALID_ARGUMENT.
[[nodiscard]] result<std::vector<allowed_backend>> parse_allowed(std::string_view text);

// Checks that the policy permits a backend of this name. BN-T-NOT-ALLOWED (BITNET_UNAVAILABLE).
[[nodiscard]] checked<void> check_allowed(const policy& rules, const std::string& name);

// What a file claims about itself; its author may have invented it.
struct file_claim {
  std::string name, build_id;  // build_id: hexadecimal, "" if absent
};

// Checks that the policy permits the file. BN-T-NOT-ALLOWED, BN-T-HASH, BN-T-SIGNATURE, BN-T-KEY.
[[nodiscard]] checked<void> check_file(const policy& rules, const file_claim& claim,
                                       const trusted_file& file);

}  // namespace bitnet::plugin
