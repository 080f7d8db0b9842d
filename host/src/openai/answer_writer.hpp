#pragma once
// Turns the events of a request into the bytes of its answer: a complete body, or a stream of
// events.

#include <cstddef>
#include <string>

#include "bitnet/bitnet.h"
#include "openai/api_error.hpp"
#include "openai/timings.hpp"

namespace bitnet::host::openai {

class answer_writer {
 public:
  answer_writer() = default;
  answer_writer(const answer_writer&) = delete;
  answer_writer& operator=(const answer_writer&) = delete;
  virtual ~answer_writer() = default;

  // The results are sent in the order of the calls. For a complete body, all but end() return "".
  // An error has the status 500: memory is short.
  [[nodiscard]] virtual std::string begin() { return ""; }
  // Call it for each event of each prompt.
  [[nodiscard]] virtual parsed<std::string> take(std::size_t prompt, const bitnet_event& e) = 0;
  // Call it after all choices have had their END.
  [[nodiscard]] virtual parsed<std::string> end(const timings& took) = 0;
  // Ends a stream with an error.
  [[nodiscard]] virtual std::string fail(const api_error& why) = 0;
};

}  // namespace bitnet::host::openai
