#include "signature/manifest.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "json/reading.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/ed25519.hpp"
#include "receipt/derived.hpp"
#include "receipt/digest.hpp"
#include "receipt/envelope.hpp"
#include "signature/bundle.hpp"

namespace bitnet::signature {
namespace {

using json::member;
using json::value;

constexpr std::string_view predicate_type = "https://model_signing/signature/v1.0";
constexpr std::string_view older_predicate = "https://model_signing/Digests/v0.1";
constexpr std::size_t longest_name = 4096;
constexpr std::size_t sha256_bytes = 32;
constexpr std::size_t blake2b_bytes = 64;

std::unexpected<failure> not_as(std::string_view field, std::string_view expected,
                                const value& found) {
  return reject(field, fmt::format("expected {}, found {}", expected, json::described(found)));
}

result<void> check_predicate_type(const value& found) {
  if (found.is_string() && found.get_ref<const std::string&>() == older_predicate)
    return reject("predicateType",
                  "it was made by a version of model_signing before 1.0, which is not read; sign "
                  "the model again");
  if (found.is_string() && found.get_ref<const std::string&>() == predicate_type) return {};
  return not_as("predicateType", fmt::format("'{}'", predicate_type), found);
}

// The method of hashing.
struct method {
  hash_kind hash = hash_kind::sha256;
  uint64_t shard_size = 0;  // bytes; 0: whole files
  std::string algorithm;    // each resource must have it
};

// The tool writes a protobuf Struct, which has no integers: "shard_size": 4.0.
std::optional<uint64_t> positive_integer(const value& found) {
  constexpr double most = 9007199254740992.0;  // 2^53: all smaller integers are doubles
  if (found.is_number_unsigned() && found.get<uint64_t>() != 0) return found.get<uint64_t>();
  if (!found.is_number_float()) return std::nullopt;
  const auto real = found.get<double>();
  if (!(real >= 1 && real <= most) || std::floor(real) != real) return std::nullopt;
  return static_cast<uint64_t>(real);
}

result<hash_kind> read_hash(const value& found) {
  constexpr std::string_view field = "predicate.serialization.hash_type";
  const std::string name = found.is_string() ? found.get<std::string>() : "";
  if (name == "sha256") return hash_kind::sha256;
  if (name == "blake2b") return hash_kind::blake2b;
  if (name == "blake3")
    return reject(field, "BLAKE3 is not computed here; sign the model again with sha256");
  return not_as(field, "'sha256' or 'blake2b'", found);
}

result<method> read_method(const value& from) {
  if (!from.is_object()) return not_as("predicate.serialization", "an object", from);
  const auto hash = read_hash(member(from, "hash_type"));
  if (!hash) return std::unexpected(hash.error());
  method out{.hash = *hash, .algorithm = *hash == hash_kind::sha256 ? "sha256" : "blake2b"};
  if (!member(from, "allow_symlinks").is_boolean())
    return not_as("predicate.serialization.allow_symlinks", "true or false",
                  member(from, "allow_symlinks"));
  if (const value& ignored = member(from, "ignore_paths");
      !ignored.is_null() && !ignored.is_array())
    return not_as("predicate.serialization.ignore_paths", "a list", ignored);
  const value& how = member(from, "method");
  const std::string name = how.is_string() ? how.get<std::string>() : "";
  if (name == "files") return out;
  if (name != "shards") return not_as("predicate.serialization.method", "'files' or 'shards'", how);
  const auto size = positive_integer(member(from, "shard_size"));
  if (!size)
    return not_as("predicate.serialization.shard_size", "a number of bytes above 0",
                  member(from, "shard_size"));
  out.shard_size = *size;
  out.algorithm += fmt::format("-sharded-{}", *size);
  return out;
}

// Whether it is a path below the folder in normal form.
bool is_path_below(const std::string& name) {
  if (name == ".") return true;
  const std::filesystem::path path(name);
  if (name.empty() || name.size() > longest_name || name.contains('\0') || path.is_absolute())
    return false;
  for (const std::filesystem::path& part : path)
    if (part == ".." || part == "." || part.empty()) return false;
  return path.lexically_normal().native() == name;
}

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return out;
}

// Cuts "weights.bin:0:1000" to "weights.bin" and its bounds.
std::optional<std::string> cut_bounds(const std::string& name, piece& to) {
  const std::size_t second = name.rfind(':');
  if (second == std::string::npos || second == 0) return std::nullopt;
  const std::size_t first = name.rfind(':', second - 1);
  if (first == std::string::npos) return std::nullopt;
  const std::string_view all = name;
  const auto begin = number_in(all.substr(first + 1, second - first - 1));
  const auto end = number_in(all.substr(second + 1));
  if (!begin || !end) return std::nullopt;
  to.begin = *begin;
  to.end = *end;
  return name.substr(0, first);
}

bool follows(const std::vector<piece>& before, const piece& next, uint64_t shard_size) {
  const uint64_t at = before.empty() ? 0 : before.back().end;
  return next.begin == at && next.end > at && next.end != to_the_end && next.end - at <= shard_size;
}

result<void> add_resource(const value& from, std::size_t place, const method& by, manifest& to) {
  const auto field = [&](const char* of) {
    return fmt::format("predicate.resources[{}].{}", place, of);
  };
  if (!from.is_object())
    return not_as(fmt::format("predicate.resources[{}]", place), "an object", from);
  const std::string algorithm = receipt::text_in(from, "algorithm");
  if (algorithm != by.algorithm)
    return not_as(field("algorithm"),
                  fmt::format("'{}', as predicate.serialization says", by.algorithm),
                  member(from, "algorithm"));
  piece one{.end = to_the_end, .digest = receipt::text_in(from, "digest"), .resource = place};
  const std::size_t bytes = by.hash == hash_kind::sha256 ? sha256_bytes : blake2b_bytes;
  if (!plugin::is_hexadecimal(one.digest, bytes))
    return not_as(field("digest"), fmt::format("{} hexadecimal digits", 2 * bytes),
                  member(from, "digest"));
  std::string name = receipt::text_in(from, "name");
  if (by.shard_size != 0) {
    auto path = cut_bounds(name, one);
    if (!path) return not_as(field("name"), "PATH:BEGIN:END, as of shards", member(from, "name"));
    name = *std::move(path);
  }
  if (!is_path_below(name))
    return not_as(field("name"), "a path below the model's folder", member(from, "name"));
  std::vector<piece>& pieces = to.files[name];
  if (by.shard_size == 0 ? !pieces.empty() : !follows(pieces, one, by.shard_size))
    return reject(field("name"),
                  fmt::format("{} is there twice, or its parts do not follow each other",
                              json::quoted(plugin::printable(name))));
  pieces.push_back(std::move(one));
  return {};
}

result<void> add_resources(const value& all, const method& by, manifest& to) {
  if (!all.is_array() || all.empty())
    return not_as("predicate.resources", "a list of files with digests", all);
  receipt::sha256 sum;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (auto ok = add_resource(all[i], i, by, to); !ok) return ok;
    sum.add(plugin::bytes_of_hexadecimal(receipt::text_in(all[i], "digest")));
  }
  if (to.is_one_file() && to.files.size() != 1)
    return reject("predicate.resources", "expected one file '.', or names of files; found both");
  if (const std::string is = sum.hex(); is != to.digest)
    return reject("subject[0].digest.sha256",
                  fmt::format("expected {}, which the digests of predicate.resources come to, "
                              "found {}",
                              is, to.digest));
  return {};
}

}  // namespace

result<manifest> read_manifest(std::string_view payload) {
  const auto from = receipt::read_object(payload, "the statement");
  if (!from) return reject("dsseEnvelope.payload", from.error().message);
  if (receipt::text_in(*from, "_type") != receipt::statement_type)
    return not_as("_type", fmt::format("'{}'", receipt::statement_type), member(*from, "_type"));
  if (auto ok = check_predicate_type(member(*from, "predicateType")); !ok)
    return std::unexpected(std::move(ok.error()));
  const value& subjects = member(*from, "subject");
  if (!subjects.is_array() || subjects.size() != 1 || !subjects[0].is_object())
    return not_as("subject", "a list of one object", subjects);
  manifest out;
  out.name = receipt::text_in(subjects[0], "name");
  out.digest = receipt::text_in(member(subjects[0], "digest"), "sha256");
  if (!plugin::is_hexadecimal(out.digest, sha256_bytes))
    return not_as("subject[0].digest.sha256", "64 hexadecimal digits",
                  member(subjects[0], "digest"));
  const value& predicate = member(*from, "predicate");
  if (!predicate.is_object()) return not_as("predicate", "an object", predicate);
  const auto by = read_method(member(predicate, "serialization"));
  if (!by) return std::unexpected(by.error());
  out.hash = by->hash;
  if (auto ok = add_resources(member(predicate, "resources"), *by, out); !ok)
    return std::unexpected(std::move(ok.error()));
  return out;
}

}  // namespace bitnet::signature
