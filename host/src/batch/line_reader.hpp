#pragma once
// Lines of a file or a pipe, one at a time, in bounded memory.

#include <cstdint>
#include <optional>
#include <string>

#include "files/descriptor.hpp"
#include "result.hpp"
#include "text/incoming.hpp"

namespace bitnet::host::batch {

inline constexpr uint64_t longest_line = 16ull << 20;  // bytes

struct input_line {
  uint64_t number = 0;  // from 1
  std::string text;     // without its end
  std::string fault;    // why it is no text of at most longest_line bytes; "": it is
};

class line_reader {
 public:
  // "-": standard input. Exit code 2 where it cannot be opened.
  static result<line_reader> open(const std::string& file);

  // The next line that was read whole, blank ones left out; nullopt: read_more() first, or the end.
  // Exit code 2 where the first line shows that the file is no text.
  [[nodiscard]] result<std::optional<input_line>> take();
  // Reads once, at most 1 MiB; waits where nothing is there. Exit code 1 for an error.
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
  std::string buffer_;  // what was read and not taken, from begin_ on
  std::size_t begin_ = 0;
  std::size_t searched_ = 0;  // no line ends before it
  bool too_long_ = false;     // the begin of this line was dropped
  bool at_end_ = false;
  uint64_t number_ = 0;
  uint64_t bytes_taken_ = 0;
  uint64_t file_bytes_ = 0;
  text::incoming_lines incoming_;
};

}  // namespace bitnet::host::batch
