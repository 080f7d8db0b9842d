#pragma once
// Reads the errors that plugins fill in.

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "bitnet/abi/base.h"
#include "plugin/codes/text.hpp"

namespace bitnet::plugin {

[[nodiscard]] inline bitnet_error blank_error() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

// Code 0 if there is none: then its domain is ignored. Flags without a meaning yet are dropped.
[[nodiscard]] inline origin origin_of(const bitnet_error& e) {
  const uint32_t flags = e.flags & (BITNET_ERROR_RETRYABLE | BITNET_ERROR_USER_FIXABLE);
  if (e.native_code == 0) return {"", 0, flags};
  const std::string_view all(e.domain, sizeof e.domain);
  constexpr std::size_t escaped = 4 * sizeof e.domain;
  return {printable(all.substr(0, all.find('\0')), escaped), e.native_code, flags};
}

// "driver -4"; "" if there is no code.
[[nodiscard]] inline std::string in_words(const origin& o) {
  if (o.code == 0) return "";
  return fmt::format("{} {}", o.domain.empty() ? "code" : o.domain, o.code);
}

[[nodiscard]] inline std::string describe(bitnet_status status, const bitnet_error& e) {
  const std::string message = printable_array(e.message);
  const std::string native = in_words(origin_of(e));
  return fmt::format("{} (status {}{}{})", message.empty() ? "no reason given" : message, status,
                     native.empty() ? "" : ", ", native);
}

}  // namespace bitnet::plugin
