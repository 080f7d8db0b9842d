#pragma once
// A log message before it becomes text or JSON.

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
};  // levels of --verbosity

// A member of a JSON line. `name` is a literal that needs no escapes.
struct log_field {
  std::string_view name;
  std::variant<std::string, int64_t, double> value;
};

// What a JSON line has instead of the text: a short message that all lines of its kind share, and
// members. Without a message, the text is used.
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
