#pragma once
// A file of lines that only grows, and that a later run goes on with.
//
// Lock     flock(2): a second process with the same file is refused. It ends with the process.
// Kill     a line that was cut by a kill is the last one: what read() leaves over.
// To disk  once a second while lines come, and at the end.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace bitnet::host::batch {

// A file that it must not be.
struct other_file {
  int descriptor;
  const char* what;  // "the input"
};

class line_file {
 public:
  // Makes the file where there is none. Exit code 2 for one that cannot be gone on with, or that is
  // one of `others`; 1 where another process has it.
  static result<line_file> open(const std::string& path, std::span<const other_file> others);

  // Gives each whole line without its end, from the first on, and then returns what is behind the
  // last one. `longest` bytes at most; `what` says what has such lines.
  result<std::string> read(std::size_t longest, const char* what,
                           const std::function<result<void>(std::string_view line)>& take);
  // Bytes of the whole lines that were read or appended.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // What is behind that many bytes is removed.
  result<void> cut(uint64_t bytes);

  // Whole lines with their ends. After an error the file ends with the last whole line.
  result<void> append(std::string_view lines);
  // append() calls it once a second.
  result<void> sync();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return file_.get(); }
  // Whether append() would call sync() now.
  [[nodiscard]] bool is_due() const;

 private:
  line_file(std::string path, files::descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}
  [[nodiscard]] std::unexpected<failure> broken(int error) const;

  std::string path_;
  files::descriptor file_;
  uint64_t bytes_ = 0;
  bool is_synced_ = true;
  std::chrono::steady_clock::time_point synced_;
};

}  // namespace bitnet::host::batch
