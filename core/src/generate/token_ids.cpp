#include "generate/token_ids.hpp"

#include <fmt/core.h>

namespace bitnet::generate {

result<void> check_ids(std::span<const int32_t> ids, uint64_t n_vocab) {
  for (const int32_t id : ids)
    if (id < 0 || static_cast<uint32_t>(id) >= n_vocab)
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("token id {} is not in the vocabulary of {}", id, n_vocab));
  return {};
}

}  // namespace bitnet::generate
