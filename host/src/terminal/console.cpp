#include "terminal/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "terminal/output.hpp"

namespace bitnet::host {
namespace {

// Messages may carry text from a model file: no control character of it reaches the terminal.
std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = c == '\n' ? ' ' : '?';
  }
  return out;
}

}  // namespace

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
void console::line(std::string_view text) const {
  raw(std::string(text) + "\n");
}

void console::error(std::string_view message) const {
  line(painted(31, "bitnet:") + " " + printable(message));
}
void console::warning(std::string_view message) const {
  if (verbosity_ >= 2) line(painted(33, "bitnet: warning:") + " " + printable(message));
}
void console::note(std::string_view message) const {
  if (verbosity_ >= 3) line(printable(message));
}
void console::detail(std::string_view message) const {
  if (verbosity_ >= 4) line(painted(2, printable(message)));
}
void console::debug(std::string_view message) const {
  if (verbosity_ >= 5) line(painted(2, printable(message)));
}

}  // namespace bitnet::host
