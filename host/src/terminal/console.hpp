#pragma once
// Standard error: errors, warnings, notes and progress, each a line, each only if it is wanted; and
// the log, which has a level of its own. Safe to use from any thread: one write per line.
//
// Where standard error is a stream of systemd's journal, each line begins with its priority.

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

  // Opens the log, too.
  result<void> configure(const settings& set, const environment& variables);
  // From now on a thread writes: no other waits for a terminal, a pipe or a disk. Before other
  // threads use it. The end waits for the lines that are left, some seconds at most.
  void write_in_background();

  void error(std::string_view message) const;    // bitnet: message
  void warning(std::string_view message) const;  // bitnet: warning: message
  void note(std::string_view message) const;     // message
  // What the library does. `facts`: what a log of JSON has in place of the message.
  void detail(std::string_view message, const log_facts& facts = {}) const;
  void debug(std::string_view message) const;

  void record(std::string_view message) const;  // a note for the log alone

  // Asked for by a flag of its own, so printed at any verbosity.
  void line(std::string_view text) const;  // escaped; line ends stay
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
  void say(std::string_view text) const;  // a line as it is
  void report(log_level level, std::string_view prefix, int sgr, std::string_view message,
              const log_facts& facts = {}) const;

  bool is_terminal_;
  bool color_ = false;
  bool is_journal_ = false;
  int verbosity_ = 3;
  std::unique_ptr<log_queue> printed_;  // to standard error; the log reports its losses there
  std::unique_ptr<log> log_;            // nullptr: none
  int logged_ = 0;                      // the log's level
  bool log_is_shown_ = false;           // its lines are on standard error, in place of ours
};

}  // namespace bitnet::host
