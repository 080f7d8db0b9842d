#pragma once
// Detects whether a descriptor is a stream of systemd's journal, by JOURNAL_STREAM
// (systemd.exec(5)).

#include <string_view>

#include "log/log_line.hpp"

namespace bitnet::host {

// `variable`: the value of JOURNAL_STREAM, "DEVICE:INODE". The numbers are compared, since a child
// with a redirected descriptor inherits the variable.
[[nodiscard]] bool is_journal_stream(int descriptor, std::string_view variable);

// The priority that sd-daemon(3) expects as "<N>" before a line: 3 errors, 4 warnings, 6 notes, 7
// details.
[[nodiscard]] int priority_of(log_level level);

}  // namespace bitnet::host
