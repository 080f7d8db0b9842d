#pragma once
// The child as its parent has it: started, read from with a bound on time, and ended.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace bitnet::host::crossval {

struct process_limits {
  std::chrono::milliseconds patience{0};  // of one read in which no byte comes
  std::function<bool()> stop;             // asked several times a second: the user wants to leave
};

class foreign_process {
 public:
  // Starts this program with these words; `input` is its standard input.
  [[nodiscard]] static result<foreign_process> start(const std::vector<std::string>& words,
                                                     std::string_view input, process_limits limits);
  foreign_process(foreign_process&&) noexcept;
  foreign_process& operator=(foreign_process&&) = delete;
  ~foreign_process();  // kills it if it runs, and waits

  // A failure that the child reported, with the last lines of its standard error.
  [[nodiscard]] failure explained(failure why);

  // Fills all of it. A child that ends, crashes or hangs is a failure with its last lines of
  // standard error. `doing` is in the message: "loading the model".
  [[nodiscard]] result<void> read(std::span<std::byte> to, std::string_view doing);

 private:
  foreign_process(pid_t child, files::descriptor out, files::descriptor err, process_limits limits);
  // Waits until there is something to read of `out`; reads what comes on `err`.
  result<void> wait_for_more(std::string_view doing);
  bool drain_errors();  // false at its end
  [[nodiscard]] std::string how_it_ended();
  [[nodiscard]] std::string last_lines() const;

  pid_t child_;  // -1: waited for
  files::descriptor out_, err_;
  process_limits limits_;
  std::string errors_;  // the end of what it wrote on standard error
};

}  // namespace bitnet::host::crossval
