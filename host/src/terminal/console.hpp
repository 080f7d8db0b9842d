#pragma once
// Standard error: errors, warnings, notes and progress, each printed as a line if the verbosity
// allows it; and the log, which has a level of its own. Safe from any thread: one write per line.
//
// If standard error is a stream of systemd's journal, each line begins with its priority.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "log/log.hpp"
#include "log/log_queue.hpp"
#include "settings/environment.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

class console {
 public:
  console();  // before the settings are known

  // Also opens the log.
  result<void> configure(const settings& set, const environment& variables);
  // From now on a separate thread writes, so that no other waits for a terminal, a pipe or a disk.
  // Call it before other threads use the console. The destructor waits some seconds for remaining
  // lines.
  void write_in_background();

  void error(std::string_view message) const;    // bitnet: message
  void warning(std::string_view message) const;  // bitnet: warning: message
  void note(std::string_view message) const;     // message
  // Details of the library's work. `facts`: what a JSON log has in place of the message.
  void detail(std::string_view message, const log_facts& facts = {}) const;
  void debug(std::string_view message) const;

  void record(std::string_view message) const;  // a note for the log alone

  // Output that a flag of its own requests; printed at any verbosity.
  void line(std::string_view text) const;  // escaped; newlines stay
  void raw(std::string_view text) const;   // no newline: prompts and the progress bar

  [[nodiscard]] bool is_terminal() const { return is_terminal_; }
  [[nodiscard]] bool shows_notes() const { return verbosity_ >= 3; }
  [[nodiscard]] int verbosity() const { return verbosity_; }
  // Whether the message is printed or logged.
  [[nodiscard]] bool wants(log_level level) const {
    return std::max(verbosity_, logged_) >= static_cast<int>(level);
  }
  // `text` in a colour, if colours are wanted. 31 red, 32 green, 33 yellow, 2 dim.
  [[nodiscard]] std::string painted(int sgr, std::string_view text) const;

 private:
  void say(std::string_view text) const;  // an unescaped line
  void report(log_level level, std::string_view prefix, int sgr, std::string_view message,
              const log_facts& facts = {}) const;

  bool is_terminal_;
  bool color_ = false;
  bool is_journal_ = false;
  int verbosity_ = 3;
  std::unique_ptr<log_queue> printed_;  // to standard error; the log reports its losses
  std::unique_ptr<log> log_;            // nullptr: none
  int logged_ = 0;                      // the log's level
  bool log_is_shown_ = false;           // log lines go to standard error in place of ours
};

}  // namespace bitnet::host
