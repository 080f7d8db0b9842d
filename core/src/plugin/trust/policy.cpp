#include "plugin/trust/policy.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/wording.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/file_map.hpp"
#include "plugin/trust/hash.hpp"
#include "plugin/trust/signature.hpp"
#include "text/items.hpp"

namespace bitnet::plugin {
namespace {

constexpr std::size_t sha256_digits = 64;

bool is_id(std::string_view text) {
  return text.size() >= 8 && text.size() <= sha256_digits && text.size() % 2 == 0 &&
         std::ranges::all_of(
             text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string sha256_of(const trusted_file& file) {
  const auto map = file_map::open(file.fd.get(), file.identity.size_bytes);
  return map ? plugin::sha256_of(map->bytes()) : "";
}

bool is_hash(std::string_view id) {
  return id.size() == sha256_digits;
}

checked<void> check_id(const policy& rules, const file_claim& claim, const trusted_file& file) {
  std::vector<std::string> wanted;
  for (const allowed_backend& one : rules.allowed)
    if (one.name == claim.name) wanted.push_back(one.id);
  if (wanted.empty() || std::ranges::find(wanted, "") != wanted.end()) return {};
  // The author of a file chooses its build id and may choose digits of a hash, so a build id never
  // matches a hash.
  if (!is_hash(claim.build_id) && std::ranges::find(wanted, claim.build_id) != wanted.end())
    return {};
  std::string is =
      fmt::format("the build id {}", claim.build_id.empty() ? "of none" : claim.build_id);
  // Hashing a big file takes a while, so only if a rule has a hash.
  if (std::ranges::any_of(wanted, is_hash)) {
    const std::string hash = sha256_of(file);
    if (std::ranges::find(wanted, hash) != wanted.end()) return {};
    is += fmt::format(" and the SHA-256 {}", hash);
  }
  return reject(code::trust_hash,
                fmt::format("{} has {}; the allow-list wants {}",
                            printable(file.path.string(), 400), is, join(wanted, " or ")),
                "install the file that is allowed, or correct " + say(word::allowed_backends));
}

}  // namespace

result<std::vector<allowed_backend>> parse_allowed(std::string_view given) {
  std::vector<allowed_backend> out;
  if (text::without_blanks_around(given).empty()) return out;
  for (const std::string_view item : text::items(given)) {
    const std::size_t at = std::min(item.find('@'), item.size());
    allowed_backend one{std::string(item.substr(0, at)), ""};
    if (at < item.size()) one.id = item.substr(at + 1);
    if (!is_backend_name(one.name) || (at < item.size() && !is_id(one.id)))
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("the allow-list has '{}'; a backend's name was expected, or NAME@ID "
                              "with its build id or its SHA-256 in lower case hexadecimal",
                              printable(item, 100)));
    out.push_back(std::move(one));
  }
  return out;
}

checked<void> check_allowed(const policy& rules, const std::string& name) {
  if (rules.allowed.empty() ||
      std::ranges::find(rules.allowed, name, &allowed_backend::name) != rules.allowed.end())
    return {};
  std::vector<std::string> names;
  for (const allowed_backend& one : rules.allowed)
    if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
  return std::unexpected(
      defect{code::trust_not_allowed, BITNET_UNAVAILABLE,
             fmt::format("not allowed: the allow-list names only {}", join(names, ", ")),
             fmt::format("add {} to {}", name, say(word::allowed_backends))});
}

checked<void> check_file(const policy& rules, const file_claim& claim, const trusted_file& file) {
  if (auto fine = check_id(rules, claim, file); !fine) return fine;
  if (!rules.require_signature) return {};
  const auto signed_by = verify_file(file, rules.trusted_keys);
  if (!signed_by) return std::unexpected(signed_by.error());
  return {};
}

}  // namespace bitnet::plugin
