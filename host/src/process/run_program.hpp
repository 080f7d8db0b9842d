#pragma once
// Runs another program of ours to its end.

#include <string>
#include <vector>

#include "basic/result.hpp"

namespace bitnet::host {

struct program_output {
  int exit_status = 0;  // or 128 + the signal that ended it
  std::string text;     // its standard output
};

constexpr int run_program_failed =
    127;  // the exit status where it could not run, as a shell has it

// Path of the program of that name beside this one; "" if it is not installed.
[[nodiscard]] std::string sibling_program(const std::string& name);

// Waits for the program's end; output of more than `limit` bytes is a failure.
[[nodiscard]] result<program_output> run_program(const std::string& program,
                                                 std::vector<std::string> arguments,
                                                 std::size_t limit);

}  // namespace bitnet::host
