#pragma once
// Standard error: errors, warnings, notes and progress, each a line, each only if it is wanted.
// Safe to use from any thread: one write per line.

#include <cstdint>
#include <string_view>

#include "settings/environment.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

class console {
 public:
  console();  // before the settings are known

  void configure(const settings& set, const environment& variables);

  void error(std::string_view message) const;    // bitnet: message
  void warning(std::string_view message) const;  // bitnet: warning: message
  void note(std::string_view message) const;     // message
  void detail(std::string_view message) const;   // what the library does
  void debug(std::string_view message) const;

  // Asked for by a flag of its own, so printed at any verbosity.
  void line(std::string_view text) const;  // escaped; line ends stay
  void raw(std::string_view text) const;   // no newline: prompts and the progress bar

  [[nodiscard]] bool is_terminal() const { return is_terminal_; }
  [[nodiscard]] bool shows_notes() const { return verbosity_ >= 3; }
  [[nodiscard]] int verbosity() const { return verbosity_; }
  // `text` in a colour, if colours are wanted. 31 red, 32 green, 33 yellow, 2 dim.
  [[nodiscard]] std::string painted(int sgr, std::string_view text) const;

 private:
  void say(std::string_view text) const;  // a line as it is

  bool is_terminal_;
  bool color_ = false;
  int verbosity_ = 3;
};

}  // namespace bitnet::host
