#pragma once
// Where threads compute and what lies in large pages, in words for -v and the tables.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace bitnet::host {

// Of the member `threads` of a report: "2 on CPUs 0-1", or where each of them is kept. "" where the
// library reports nothing.
[[nodiscard]] std::string threads_text(const nlohmann::json& report);
// Whether the report names a place for each thread.
[[nodiscard]] bool has_places(const nlohmann::json& report);

// Bytes of this process that lie in large pages.
struct large_pages {
  uint64_t own = 0;    // memory of its own
  uint64_t files = 0;  // files that are mapped
};
// Of the text of /proc/PID/smaps_rollup; nothing where the system does not count them.
[[nodiscard]] std::optional<large_pages> read_large_pages(std::string_view smaps_rollup);
// Of this process, now; nothing where that cannot be known.
[[nodiscard]] std::optional<large_pages> large_pages_now();
// "1105 MB of memory, 0 MB of files"
[[nodiscard]] std::string text_of(const large_pages& pages);

}  // namespace bitnet::host
