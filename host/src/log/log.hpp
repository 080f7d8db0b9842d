#pragma once
// The log of the program, of which what it prints on standard error is independent: each message
// with its time and level, in a file, on standard error or in systemd's journal. Of spdlog, which
// writes it, no other file knows.
//
// Messages are text from outside. Text escapes what a terminal would obey, line ends among it;
// JSON escapes everything but ASCII. One message is one line.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "log/log_line.hpp"
#include "log/log_options.hpp"
#include "result.hpp"

namespace bitnet::host {

class log {
 public:
  // `on_loss` is called once, from whatever thread it happens in, when a line cannot be written.
  // Exit code 1 if a file cannot be opened or there is no journal.
  static result<std::unique_ptr<log>> open(const log_options& wanted,
                                           std::function<void(const std::string& why)> on_loss);

  log(const log&) = delete;
  log& operator=(const log&) = delete;
  ~log();

  // From any thread. What is above the level of the options is dropped. The line is in the file,
  // though perhaps not on the disk, when this returns; behind write_in_background(), soon after,
  // and a place that takes nothing loses the oldest lines.
  void write(log_level level, std::string_view message, const log_facts& facts = {}) const;

  // Before other threads write.
  void write_in_background();

 private:
  struct contents;
  explicit log(std::unique_ptr<contents> c);

  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::host
