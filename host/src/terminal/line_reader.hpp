#pragma once
// Reads lines of a conversation: with editing and history on a terminal, plain otherwise.

#include <cstdint>
#include <memory>
#include <string>

#include "settings/environment.hpp"

namespace bitnet::host {

class line_reader {
 public:
  enum class outcome : uint8_t { line, end, interrupted };

  // libedit with a history in $XDG_STATE_HOME/bitnet/history (mode 0600; none with
  // BITNET_NOHISTORY) if standard input and error are terminals.
  static std::unique_ptr<line_reader> open(const environment& variables);

  virtual ~line_reader() = default;
  // `line` without its newline. Ctrl-C gives interrupted; call inside an interrupt::scope.
  virtual outcome read(const std::string& prompt, std::string& line) = 0;
};

}  // namespace bitnet::host
