#pragma once
// One message for the log, before it is text or JSON.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bitnet::host {

enum class log_level : uint8_t {
  error = 1,
  warning,
  note,
  detail,
  debug
};  // as --verbosity has it

// A member of a line of JSON. `name` is a literal and needs no escapes.
struct log_field {
  std::string_view name;
  std::variant<std::string, int64_t, double> value;
};

// What a line of JSON has in place of the text: a short message that is the same for all lines of
// its kind, and members. Without a message, the text.
struct log_facts {
  std::string_view message = {};
  std::vector<log_field> fields = {};
};

struct log_line {
  log_level level = log_level::note;
  std::chrono::system_clock::time_point at = {};
  std::string text = {};
  log_facts facts = {};
};

}  // namespace bitnet::host
