#pragma once
// Lines of a file or a pipe, one at a time, in bounded memory.

#include <cstdint>
#include <optional>
#include <string>

#include "basic/result.hpp"
#include "files/descriptor.hpp"
#include "text/incoming.hpp"

namespace bitnet::host::batch {

inline constexpr uint64_t longest_line = 16ull << 20;  // bytes

struct input_line {
  uint64_t number = 0;  // from 1
  std::string text;     // without its end
  std::string fault;    // why it is not text of at most longest_line bytes; "": it is
};

class line_reader {
 public:
  // "-" is standard input. Exit code 2 if the file cannot be opened.
  static result<line_reader> open(const std::string& file);

  // Returns the next complete line that is not blank. nullopt: call read_more(), or the file has
  // ended. Exit code 2 if the first line shows that the file is not text.
  [[nodiscard]] result<std::optional<input_line>> take();
  // Reads once, at most 1 MiB, and waits for input. Exit code 1 for an error.
  result<void> read_more();
  [[nodiscard]] bool at_end() const { return at_end_ && begin_ == buffer_.size() && !too_long_; }
  [[nodiscard]] bool wants_more() const { return !at_end_; }

  [[nodiscard]] int descriptor() const { return file_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uint64_t bytes_taken() const { return bytes_taken_; }
  [[nodiscard]] uint64_t file_bytes() const { return file_bytes_; }  // 0: a pipe

 private:
  line_reader(std::string name, files::descriptor file)
      : name_(std::move(name)), file_(std::move(file)) {}
  input_line cut(std::size_t end, bool has_newline);

  std::string name_;
  files::descriptor file_;
  std::string buffer_;  // bytes read and not yet taken begin at begin_
  std::size_t begin_ = 0;
  std::size_t searched_ = 0;  // no line ends before it
  bool too_long_ = false;     // a too long line: its begin was dropped
  bool at_end_ = false;
  uint64_t number_ = 0;
  uint64_t bytes_taken_ = 0;
  uint64_t file_bytes_ = 0;
  text::incoming_lines incoming_;
};

}  // namespace bitnet::host::batch
