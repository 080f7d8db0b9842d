#pragma once
// Option values for requests that come from a file or the network.

#include <cstdint>

#include "basic/result.hpp"
#include "openai/generation_fields.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

struct request_defaults {
  uint32_t n_parallel = 0;       // requests at once; 0: the library's number
  openai::generation_wish wish;  // for members that a request lacks; has no draft model
};

// Exit code 2 for invalid option values.
[[nodiscard]] result<request_defaults> given_request_defaults(const settings& set);

}  // namespace bitnet::host
