#pragma once
// The values of the log-* options.

#include <cstdint>
#include <string>
#include <string_view>

#include "basic/result.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

// A file that would exceed `bytes` is renamed to FILE.1 (log.txt to log.1.txt), the older ones to
// the next number; `kept` older files remain.
struct log_rotation {
  std::size_t bytes = 0;  // 0: never
  std::size_t kept = 5;
};

struct log_options {
  std::string file;  // "": none; "-": standard error
  bool json = false;
  bool journal = false;
  int level = 4;  // as for --verbosity
  log_rotation rotation = {};
  // Standard error is a stream of the journal: lines begin with "<priority>" and have no time.
  bool has_priorities = false;

  [[nodiscard]] bool any() const { return journal || !file.empty(); }
};

// Parses "10M" or "10M,3". Exit code 2 with the expected form.
[[nodiscard]] result<log_rotation> parse_rotation(std::string_view text);

// Exit code 2 for values that contradict each other.
[[nodiscard]] result<log_options> log_options_of(const settings& set);

}  // namespace bitnet::host
