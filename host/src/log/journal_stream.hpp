#pragma once
// Whether a descriptor is a stream of systemd's journal, as JOURNAL_STREAM says (systemd.exec(5)).

#include <string_view>

#include "log/log_line.hpp"

namespace bitnet::host {

// `variable`: the value of JOURNAL_STREAM, "DEVICE:INODE". A child whose descriptor was redirected
// has the variable, too, so that the numbers are compared.
[[nodiscard]] bool is_journal_stream(int descriptor, std::string_view variable);

// The priority of a line, which sd-daemon(3) reads of "<N>" before it: 3 errors, 4 warnings, 6
// notes, 7 what is below.
[[nodiscard]] int priority_of(log_level level);

}  // namespace bitnet::host
