#pragma once
// A file of lines that is only appended to, and that a later run continues.
//
// Lock     flock(2), until the process ends; a second process with the same file is rejected.
// Kill     it can cut the last line only, which read() returns separately.
// To disk  once a second while lines come, and at the end.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "basic/result.hpp"
#include "files/descriptor.hpp"

namespace bitnet::host::batch {

// A file that the opened one must not be identical with.
struct other_file {
  int descriptor;
  const char* what;  // "the input"
};

class line_file {
 public:
  // Creates a missing file. Exit code 2 for a file that cannot be continued or that is one of
  // `others`; 1 if another process has locked it.
  static result<line_file> open(const std::string& path, std::span<const other_file> others);

  // Gives each complete line, without its newline, from the file's begin, and returns the bytes
  // behind the last one. A line has at most `longest` bytes; `what` names the lines in messages.
  result<std::string> read(std::size_t longest, const char* what,
                           const std::function<result<void>(std::string_view line)>& take);
  // Bytes of the whole lines that were read or appended.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Truncates the file to this size.
  result<void> cut(uint64_t bytes);

  // Appends complete lines with their newlines. After an error the file ends with the last complete
  // line.
  result<void> append(std::string_view lines);
  // Writes to disk; append() calls it once a second.
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
