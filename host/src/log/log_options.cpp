#include "log/log_options.hpp"

#include <fmt/format.h>

#include <optional>

#include "settings/value.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

constexpr int64_t smallest_file = 1024;  // bytes; a line has some hundreds
constexpr int64_t largest_file = int64_t{1} << 50;
constexpr int64_t most_kept = 1000;

}  // namespace

result<log_rotation> parse_rotation(std::string_view text) {
  const std::size_t comma = std::min(text.find(','), text.size());
  log_rotation out;
  const auto bytes = parse_integer(text.substr(0, comma));
  const auto kept = comma == text.size() ? std::optional(static_cast<int64_t>(out.kept))
                                         : parse_integer(text.substr(comma + 1));
  if (!bytes || *bytes < smallest_file || *bytes > largest_file || !kept || *kept < 1 ||
      *kept > most_kept)
    return fail(
        exit_code::usage,
        fmt::format("expects SIZE or SIZE,COUNT, such as 10M,5: a size from {} bytes on and "
                    "1 to {} older files, found '{}'",
                    smallest_file, most_kept, text::printable(text, 60)));
  out.bytes = static_cast<std::size_t>(*bytes);
  out.kept = static_cast<std::size_t>(*kept);
  return out;
}

result<log_options> log_options_of(const settings& set) {
  log_options out{.file = set.text("log-file"),
                  .json = set.text("log-format") == "json",
                  .journal = set.flag("log-journal"),
                  .level = static_cast<int>(set.integer("log-level")),
                  .rotation = {}};
  const std::string& rotate = set.text("log-rotate");
  if (rotate.empty()) return out;
  auto rotation = parse_rotation(rotate);
  if (!rotation)
    return fail(exit_code::usage,
                fmt::format("{} {}", set.origin("log-rotate"), rotation.error().message));
  // In a config file a size without a log file is harmless.
  if (set.flagged("log-rotate") && (out.file.empty() || out.file == "-"))
    return fail(exit_code::usage, "--log-rotate needs --log-file FILE: only a file can be rotated");
  if (out.file != "-") out.rotation = *rotation;
  return out;
}

}  // namespace bitnet::host
