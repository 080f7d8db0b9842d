#pragma once
// The program ends when its work is done, neither before nor long after.
//
// Backends run in this process: one that calls exit() would make half a text look like a whole one,
// and one whose end hangs would keep the shell waiting.

#include <chrono>

namespace bitnet::host::orderly_end {

// From here on an exit() that is not announced ends with exit code 1 and a message. Once, first
// thing. Nothing helps against _exit().
void expect();

// The work is done with this exit code: what is left may take `longest_end`, then the process ends.
void announce(int exit_code);

// While alive: what is being closed may take `longest_end`, then the process ends with exit code 1
// and a message that names it. May be nested; the outermost counts.
class closing {
 public:
  explicit closing(const char* what);
  ~closing();
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;
};

inline constexpr std::chrono::seconds longest_end{30};

}  // namespace bitnet::host::orderly_end
