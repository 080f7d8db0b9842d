#include "terminal/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "basic/output.hpp"
#include "log/journal_stream.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
console::console()
    : is_terminal_(::isatty(STDERR_FILENO) == 1),
      printed_(std::make_unique<log_queue>(
          [](const log_line& line) { (void)write_all(STDERR_FILENO, line.text); })) {}

result<void> console::configure(const settings& set, const environment& variables) {
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
  is_journal_ = is_journal_stream(STDERR_FILENO, variables.get("JOURNAL_STREAM").value_or(""));
  auto logging = log_options_of(set);
  if (!logging) return std::unexpected(logging.error());
  logging->has_priorities = is_journal_;
  if (!logging->any()) return {};
  auto opened = log::open(*logging, [this](const std::string& why) {
    if (verbosity_ >= 2)
      say(fmt::format("{} the log misses lines: {}", painted(33, "bitnet: warning:"),
                      text::printable(why)));
  });
  if (!opened) return std::unexpected(opened.error());
  log_ = std::move(*opened);
  logged_ = logging->level;
  log_is_shown_ = logging->file == "-";
  return {};
}

void console::write_in_background() {
  printed_->start();
  if (log_) log_->write_in_background();
}

std::string console::painted(int sgr, std::string_view text) const {
  if (!color_ || sgr == 0) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", sgr, text);
}

void console::raw(std::string_view text) const {
  printed_->add({.text = std::string(text)});
}
void console::say(std::string_view text) const {
  raw(std::string(text) + "\n");
}
void console::line(std::string_view text) const {
  say(text::printable_lines(text));
}

// Prints the message after its coloured prefix; without a prefix, the message is coloured.
void console::report(log_level level, std::string_view prefix, int sgr, std::string_view message,
                     const log_facts& facts) const {
  if (log_) log_->write(level, message, facts);
  if (log_is_shown_ || (level != log_level::error && verbosity_ < static_cast<int>(level))) return;
  const std::string shown = text::printable(message);
  const std::string priority = is_journal_ ? fmt::format("<{}>", priority_of(level)) : "";
  say(priority +
      (prefix.empty() ? painted(sgr, shown) : fmt::format("{} {}", painted(sgr, prefix), shown)));
}

void console::error(std::string_view message) const {
  report(log_level::error, "bitnet:", 31, message);
}
void console::warning(std::string_view message) const {
  report(log_level::warning, "bitnet: warning:", 33, message);
}
void console::note(std::string_view message) const {
  report(log_level::note, "", 0, message);
}
void console::detail(std::string_view message, const log_facts& facts) const {
  report(log_level::detail, "", 2, message, facts);
}
void console::debug(std::string_view message) const {
  report(log_level::debug, "", 2, message);
}
void console::record(std::string_view message) const {
  if (log_) log_->write(log_level::note, message);
}

}  // namespace bitnet::host
