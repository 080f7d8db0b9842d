#pragma once
// Turns the events of a request into the bytes of its answer: a body that is whole at the end, or
// the events of a stream.

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

  // What each call gives is sent in this order; of a body that is whole at the end, all but end()
  // give "". An error has the status 500: memory is short.
  [[nodiscard]] virtual std::string begin() { return ""; }
  // Of each event of each prompt.
  [[nodiscard]] virtual parsed<std::string> take(std::size_t prompt, const bitnet_event& e) = 0;
  // Behind the ENDs of all choices.
  [[nodiscard]] virtual parsed<std::string> end(const timings& took) = 0;
  // In place of what is left of a stream.
  [[nodiscard]] virtual std::string fail(const api_error& why) = 0;
};

}  // namespace bitnet::host::openai
