#include "batch/id_set.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <random>

namespace bitnet::host::batch {

bool shard::has(std::string_view custom_id) const {
  return XXH3_64bits(custom_id.data(), custom_id.size()) % count == index;
}

std::optional<shard> parse_shard(std::string_view text) {
  shard out;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto first = std::from_chars(begin, end, out.index);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '/') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, out.count);
  if (second.ec != std::errc{} || second.ptr != end || out.index >= out.count) return std::nullopt;
  return out;
}

std::string name_of(std::string_view custom_id) {
  const XXH128_hash_t hash = XXH3_128bits(custom_id.data(), custom_id.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

id_set::id_set() {
  std::random_device source;
  secret_ = uint64_t{source()} << 32U | source();
}

id_set::key id_set::key_of(std::string_view custom_id) const {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(custom_id.data(), custom_id.size(), secret_);
  return {hash.low64, hash.high64};
}

bool id_set::add_answered(std::string_view custom_id) {
  const bool is_new = met_.emplace(key_of(custom_id), false).second;
  n_unmet_ += is_new ? 1 : 0;
  return is_new;
}

bool id_set::has(std::string_view custom_id) const {
  return met_.contains(key_of(custom_id));
}

id_set::found id_set::meet(std::string_view custom_id) {
  const auto [at, is_new] = met_.emplace(key_of(custom_id), true);
  if (is_new) return found::unknown;
  if (at->second) return found::repeated;
  at->second = true;
  --n_unmet_;
  return found::answered;
}

}  // namespace bitnet::host::batch
