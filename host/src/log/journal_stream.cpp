#include "log/journal_stream.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

namespace bitnet::host {

bool is_journal_stream(int descriptor, std::string_view variable) {
  if (variable.empty()) return false;
  struct stat found{};
  if (::fstat(descriptor, &found) != 0) return false;
  return variable == fmt::format("{}:{}", found.st_dev, found.st_ino);
}

int priority_of(log_level level) {
  switch (level) {
    case log_level::error:
      return 3;
    case log_level::warning:
      return 4;
    case log_level::note:
      return 6;
    case log_level::detail:
    case log_level::debug:
      break;
  }
  return 7;
}

}  // namespace bitnet::host
