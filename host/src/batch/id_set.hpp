#pragma once
// The custom_ids that a batch has seen, in memory that does not depend on their lengths, and the
// assignment of ids to shards.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace bitnet::host::batch {

// Part i of n, counted from 0.
struct shard {
  uint64_t index = 0;
  uint64_t count = 1;

  // Hashes with XXH3 (64 bits, seed 0) over the id's UTF-8 bytes, modulo n, so other tools can
  // compute it.
  [[nodiscard]] bool has(std::string_view custom_id) const;
  // A line without a readable id is assigned by its number, from 1.
  [[nodiscard]] bool has_line(uint64_t number) const { return number % count == index; }
};

// "0/4". nullopt: the text has another form.
[[nodiscard]] std::optional<shard> parse_shard(std::string_view text);

// The id's 128-bit XXH3 as 32 hexadecimal digits; answers to this id are named by it.
[[nodiscard]] std::string name_of(std::string_view custom_id);

// Stores 128 bits of each id's hash, about 56 bytes per id. The key is random, so that no input can
// be constructed to contain two ids that collide.
class id_set {
 public:
  id_set();

  // Adds an id from the output file. False: it was there already.
  bool add_answered(std::string_view custom_id);
  // Whether add_answered() or meet() added the id.
  [[nodiscard]] bool has(std::string_view custom_id) const;
  enum class found : uint8_t { unknown, answered, repeated };
  // Adds an id from the input file and says what it is; a second meet() reports it as repeated.
  found meet(std::string_view custom_id);

  // Number of answered ids that meet() has not seen.
  [[nodiscard]] uint64_t unmet() const { return n_unmet_; }

 private:
  struct key {
    uint64_t low = 0, high = 0;
    bool operator==(const key&) const = default;
  };
  struct key_hash {
    std::size_t operator()(const key& k) const { return k.low; }
  };
  [[nodiscard]] key key_of(std::string_view custom_id) const;

  uint64_t secret_;
  std::unordered_map<key, bool, key_hash> met_;
  uint64_t n_unmet_ = 0;
};

}  // namespace bitnet::host::batch
