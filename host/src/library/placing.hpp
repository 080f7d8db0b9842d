#pragma once
// Text for -v and the tables: where threads run, and how much memory is in large pages.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace bitnet::host {

// The member `threads` of a report as text: "2 on CPUs 0-1", or the place of each thread if they
// are pinned. "" if the library reports none.
[[nodiscard]] std::string threads_text(const nlohmann::json& report);
// Whether the report names a place for each thread.
[[nodiscard]] bool has_places(const nlohmann::json& report);

// Bytes of this process in large pages.
struct large_pages {
  uint64_t own = 0;    // anonymous memory
  uint64_t files = 0;  // mapped files
};
// Parses /proc/PID/smaps_rollup; nothing if the system does not count them.
[[nodiscard]] std::optional<large_pages> read_large_pages(std::string_view smaps_rollup);
// This process, now; nothing if unknown.
[[nodiscard]] std::optional<large_pages> large_pages_now();
// "1105 MB of memory, 0 MB of files"
[[nodiscard]] std::string text_of(const large_pages& pages);

}  // namespace bitnet::host
