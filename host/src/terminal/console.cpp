#include "terminal/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "terminal/output.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
console::console() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

void console::configure(const settings& set, const environment& variables) {
  verbosity_ = static_cast<int>(set.integer("verbosity"));
  if (set.flag("verbose")) verbosity_ = 5;
  if (set.flag("quiet")) verbosity_ = 1;
  const std::string& wanted = set.text("color");
  if (wanted == "auto") {
    color_ = variables.get("CLICOLOR_FORCE").value_or("0") != "0" ||
             (is_terminal_ && !variables.get("NO_COLOR") &&
              variables.get("TERM").value_or("dumb") != "dumb");
  } else {
    color_ = wanted == "always";
  }
}

std::string console::painted(int sgr, std::string_view text) const {
  if (!color_) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", sgr, text);
}

void console::raw(std::string_view text) const {
  (void)write_all(STDERR_FILENO, text);
}
void console::say(std::string_view text) const {
  raw(std::string(text) + "\n");
}
void console::line(std::string_view text) const {
  say(text::printable_lines(text));
}

void console::error(std::string_view message) const {
  say(fmt::format("{} {}", painted(31, "bitnet:"), text::printable(message)));
}
void console::warning(std::string_view message) const {
  if (verbosity_ >= 2)
    say(fmt::format("{} {}", painted(33, "bitnet: warning:"), text::printable(message)));
}
void console::note(std::string_view message) const {
  if (verbosity_ >= 3) say(text::printable(message));
}
void console::detail(std::string_view message) const {
  if (verbosity_ >= 4) say(painted(2, text::printable(message)));
}
void console::debug(std::string_view message) const {
  if (verbosity_ >= 5) say(painted(2, text::printable(message)));
}

}  // namespace bitnet::host
