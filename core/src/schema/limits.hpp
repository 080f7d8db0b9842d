#pragma once
// Limits of a schema, so that none takes more memory or time than a small part of a model's.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace bitnet::schema {

inline constexpr std::size_t longest_schema = std::size_t{1} << 20;  // bytes
inline constexpr uint32_t deepest_schema = 100;    // objects and lists in each other
inline constexpr uint32_t most_states = 1U << 14;  // of the automaton of one string or number
inline constexpr uint32_t most_choices = 4096;     // alternatives of one value
inline constexpr uint32_t most_nodes = 1U << 14;   // different subschemas, merged ones included
inline constexpr uint32_t most_repetitions = 10'000;
inline constexpr uint64_t most_work = uint64_t{1} << 26;  // steps of a compilation: about a second

// The first error, and the work that was done. All parts of one compilation share it; once it has
// an error, each part returns something empty.
class faults {
 public:
  faults() = default;
  explicit faults(uint64_t work) : work_(work) {}  // done before
  [[nodiscard]] uint64_t work() const { return work_; }
  [[nodiscard]] const std::optional<failure>& first() const { return first_; }
  [[nodiscard]] bool any() const { return first_.has_value(); }
  // `where`: a JSON pointer as a fragment, "#/properties/a".
  void wrong(const std::string& where, const std::string& what,
             bitnet_status status = BITNET_INVALID_ARGUMENT);
  void unsupported(const std::string& where, const std::string& what) {
    wrong(where, what, BITNET_UNSUPPORTED);
  }
  // As above, for the schema of work_at().
  void unsupported(const std::string& what) { unsupported(here_, what); }
  void work_at(std::string where) { here_ = std::move(where); }
  // False if the work exceeds `most_work`.
  bool spend(uint64_t n);

 private:
  std::optional<failure> first_;
  uint64_t work_ = 0;
  std::string here_ = "#";
};

}  // namespace bitnet::schema
