#pragma once
// What options say about requests that commands take from elsewhere, a file or the network.

#include <cstdint>

#include "openai/generation_fields.hpp"
#include "result.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

struct request_defaults {
  uint32_t n_parallel = 0;       // requests at once; 0: the library's number
  openai::generation_wish wish;  // of what a request leaves open; without a draft model
};

// Exit code 2 with what is wrong.
[[nodiscard]] result<request_defaults> given_request_defaults(const settings& set);

}  // namespace bitnet::host
