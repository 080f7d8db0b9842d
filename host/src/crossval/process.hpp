#pragma once
// The parent's side of the child process: starts it, reads from it with a time limit, ends it.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "basic/result.hpp"
#include "files/descriptor.hpp"

namespace bitnet::host::crossval {

struct process_limits {
  std::chrono::milliseconds patience{0};  // limit of one read without a byte
  std::function<bool()> stop;             // polled several times a second; true: the user cancelled
};

class foreign_process {
 public:
  // Starts this program with these arguments; `input` becomes its standard input.
  [[nodiscard]] static result<foreign_process> start(const std::vector<std::string>& words,
                                                     std::string_view input, process_limits limits);
  foreign_process(foreign_process&&) noexcept;
  foreign_process& operator=(foreign_process&&) = delete;
  ~foreign_process();  // kills it if it runs, and waits

  // Adds the last lines of the child's standard error to a failure.
  [[nodiscard]] failure explained(failure why);

  // Fills all of `to`. If the child ends, crashes or hangs, the failure has the last lines of its
  // standard error. `doing` is part of the message: "loading the model".
  [[nodiscard]] result<void> read(std::span<std::byte> to, std::string_view doing);

 private:
  foreign_process(pid_t child, files::descriptor out, files::descriptor err, process_limits limits);
  // Waits until `out` is readable, and reads `err` meanwhile.
  result<void> wait_for_more(std::string_view doing);
  bool drain_errors();  // false at the end of the stream
  [[nodiscard]] std::string how_it_ended();
  [[nodiscard]] std::string last_lines() const;

  pid_t child_;  // -1: already waited for
  files::descriptor out_, err_;
  process_limits limits_;
  std::string errors_;  // the last bytes of its standard error
};

}  // namespace bitnet::host::crossval
