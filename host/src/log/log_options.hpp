#pragma once
// What the log-* options say.

#include <cstdint>
#include <string>
#include <string_view>

#include "result.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

// When a file would become larger than `bytes`, it becomes FILE.1 (log.1.txt of log.txt), and that
// the next; `kept` older files stay.
struct log_rotation {
  std::size_t bytes = 0;  // 0: never
  std::size_t kept = 5;
};

struct log_options {
  std::string file;  // "": none; "-": standard error
  bool json = false;
  bool journal = false;
  int level = 4;  // as --verbosity
  log_rotation rotation = {};
  // Standard error is a stream of the journal: its lines begin with "<priority>", and have no time.
  bool has_priorities = false;

  [[nodiscard]] bool any() const { return journal || !file.empty(); }
};

// "10M", "10M,3". Exit code 2: what was expected and found.
[[nodiscard]] result<log_rotation> parse_rotation(std::string_view text);

// Exit code 2 for values that do not fit together.
[[nodiscard]] result<log_options> log_options_of(const settings& set);

}  // namespace bitnet::host
