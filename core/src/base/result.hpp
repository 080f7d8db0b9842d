#pragma once
// A value or a failure. Failures gain context on the way up; api/ turns them into bitnet_error.

#include <fmt/core.h>

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "bitnet/abi/base.h"

namespace bitnet {

// Source of a failure and its code there: {"driver", -4}, {"errno", 28}. Code 0: unknown.
struct origin {
  std::string domain;
  int64_t code = 0;
  uint32_t flags = 0;  // BITNET_ERROR_* that a plugin set; the edge adds those of the status
};

struct failure {
  bitnet_status status = BITNET_INTERNAL;
  std::string message;  // expected what, found what, what to do
  origin from{};        // also part of the message

  // Adds what the caller was doing: "opening x.gguf: tensor blk.0: bad shape".
  [[nodiscard]] failure within(const std::string& doing) && {
    return {status, fmt::format("{}: {}", doing, std::move(message)), std::move(from)};
  }
};

// Whether a failed call means that the device hangs or is lost, with all that it held.
constexpr bool is_loss(bitnet_status status) {
  return status == BITNET_DEVICE_LOST || status == BITNET_CONTEXT_POISONED ||
         status == BITNET_TIMEOUT;
}

template <class T>
using result = std::expected<T, failure>;

// return fail(BITNET_BAD_DATA, "...");
[[nodiscard]] inline std::unexpected<failure> fail(bitnet_status status, std::string message) {
  return std::unexpected(failure{status, std::move(message)});
}

[[nodiscard]] inline std::unexpected<failure> bad_data(std::string message) {
  return fail(BITNET_BAD_DATA, std::move(message));
}

// return pass_on(std::move(r), "opening x.gguf"); hands a failed result on, with context.
template <class T>
[[nodiscard]] std::unexpected<failure> pass_on(result<T>&& failed, const std::string& doing) {
  return std::unexpected(std::move(failed.error()).within(doing));
}

}  // namespace bitnet
