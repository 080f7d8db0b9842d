#pragma once
// Which custom_ids a batch has seen, in memory that does not depend on how long they are; and which
// shard an id belongs to.

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

  // XXH3 (64 bits, seed 0) of the id's UTF-8 bytes, modulo n: any XXH3 computes it.
  [[nodiscard]] bool has(std::string_view custom_id) const;
  // A line without an id that can be read goes by its number, from 1.
  [[nodiscard]] bool has_line(uint64_t number) const { return number % count == index; }
};

// "0/4". nullopt: it is something else.
[[nodiscard]] std::optional<shard> parse_shard(std::string_view text);

// 32 hexadecimal digits, of the 128 bits of XXH3: what answers to this id are named by.
[[nodiscard]] std::string name_of(std::string_view custom_id);

// Ids by 128 bits of a hash with a random key, so that no input can be made in which two collide;
// about 56 bytes for each.
class id_set {
 public:
  id_set();

  // Of a line of the output. False: it was there already.
  bool add_answered(std::string_view custom_id);
  // Whether add_answered() or meet() had it.
  [[nodiscard]] bool has(std::string_view custom_id) const;
  enum class found : uint8_t { unknown, answered, repeated };
  // Of a line of the input: which of these it is; from now on the id is repeated.
  found meet(std::string_view custom_id);

  // Ids that were answered and not met.
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
