#pragma once
// The program's log: each message with its time and level, in a file, on standard error or in
// systemd's journal. It is independent of what the program prints on standard error. No other file
// uses spdlog, which writes it.
//
// Messages may contain text from outside. The text form escapes control characters and newlines;
// JSON escapes everything but ASCII. One message is one line.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "basic/result.hpp"
#include "log/log_line.hpp"
#include "log/log_options.hpp"

namespace bitnet::host {

class log {
 public:
  // `on_loss` is called once, in any thread, when a line cannot be written. Exit code 1 if a file
  // cannot be opened or there is no journal.
  static result<std::unique_ptr<log>> open(const log_options& wanted,
                                           std::function<void(const std::string& why)> on_loss);

  log(const log&) = delete;
  log& operator=(const log&) = delete;
  ~log();

  // Any thread. Drops messages above the level of the options. When it returns, the line is in the
  // file, though perhaps not on disk. After write_in_background() it is written soon, and if the
  // target blocks, the oldest lines are dropped.
  void write(log_level level, std::string_view message, const log_facts& facts = {}) const;

  // Call it before other threads write.
  void write_in_background();

 private:
  struct contents;
  explicit log(std::unique_ptr<contents> c);

  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::host
