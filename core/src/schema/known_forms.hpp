#pragma once
// Keeps the rules of the last few grammars and JSON schemas, so that requests with one form compile
// it once.
//
// Memory   at most 8 forms, each within the bounds of grammar/rules.hpp.
// Errors   those of grammar::parse_gbnf and compile(); a text that is rejected is not kept.
// Threads  any.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace bitnet::schema {

enum class language : uint8_t { gbnf, json_schema };

class known_forms {
 public:
  static constexpr std::size_t most = 8;

  result<std::shared_ptr<const grammar::rule_set>> find(language written_in, std::string_view text);
  // Number of texts that were compiled since construction.
  [[nodiscard]] uint64_t n_compiled() const;

 private:
  struct entry {
    language written_in;
    std::string text;
    std::shared_ptr<const grammar::rule_set> rules;
  };
  std::shared_ptr<const grammar::rule_set> look_up(language written_in, std::string_view text);

  mutable std::mutex mutex_;  // guards the members below; not held while a text is compiled
  std::vector<entry> all_;    // least recently used first
  uint64_t n_compiled_ = 0;
};

}  // namespace bitnet::schema
