// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// The edge between C++ and the C contract: it catches every exception and reports every failure.

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "bitnet/abi/base.h"
#include "bitnet/sdk/budget.hpp"

namespace bitnet::sdk {

// Removes the last character of a UTF-8 text that was cut, if some of its bytes are missing.
inline void drop_partial_character(char* text) noexcept {
  std::size_t last = std::strlen(text);  // the offset of the first byte of the last character
  std::size_t bytes = 0;                 // of that character, as far as they are there
  uint8_t byte = 0x80;
  // A character has one first byte and at most three bytes that continue it: 0x80 to 0xBF.
  while (last > 0 && bytes < 4 && (byte & 0xC0) == 0x80) {
    byte = static_cast<uint8_t>(text[--last]);
    ++bytes;
  }
  const std::size_t whole = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
  if (bytes < whole) text[last] = '\0';
}

// The context of a call: the caller's error and the slot's name.
class reporter {
 public:
  reporter(bitnet_error* err, const char* where) noexcept : err_(err), where_(where) {}

  // A copy that adds the number of a driver's or the system's error: from("vulkan",
  // result).fail(...). `domain` outlives the reporter; it is cut after 15 bytes.
  reporter from(const char* domain, int64_t code) const noexcept {
    reporter out = *this;
    out.domain_ = domain;
    out.native_code_ = code;
    return out;
  }

  // Fills the caller's error, if there is one, and returns `code` so that it can be returned.
  [[gnu::format(printf, 3, 4)]] bitnet_status fail(bitnet_status code, const char* format,
                                                   ...) const noexcept {
    if (err_ && err_->struct_size >= sizeof(bitnet_error)) {
      std::memset(err_, 0, sizeof *err_);
      err_->struct_size = sizeof *err_;
      err_->code = code;
      if (code == BITNET_UNAVAILABLE) err_->flags = BITNET_ERROR_USER_FIXABLE;
      err_->native_code = native_code_;
      std::snprintf(err_->domain, sizeof err_->domain, "%s", domain_);
      std::snprintf(err_->where, sizeof err_->where, "%s", where_);
      va_list values;
      va_start(values, format);
      const int needed = std::vsnprintf(err_->message, sizeof err_->message, format, values);
      va_end(values);
      // The contract says that a message is UTF-8.
      if (needed >= static_cast<int>(sizeof err_->message)) drop_partial_character(err_->message);
    }
    return code;
  }

 private:
  bitnet_error* err_;
  const char* where_;
  const char* domain_ = "";
  int64_t native_code_ = 0;
};

// The name of a category in errors. Both standard categories use the numbers of errno.
inline const char* domain_of(const std::error_category& category) noexcept {
  const bool is_errno = category == std::generic_category() || category == std::system_category();
  return is_errno ? "errno" : category.name();
}

// Runs `body(reporter)`, which returns a bitnet_status, and turns exceptions into one.
template <class Body>
bitnet_status guarded(bitnet_error* err, const char* where, Body&& body) noexcept {
  const reporter report(err, where);
  try {
    return body(report);
  } catch (const over_budget& e) {
    return report.fail(BITNET_OUT_OF_MEMORY,
                       "the memory limit of this device is %llu bytes: %llu are in use and %llu "
                       "more are needed; raise the limit, or use a smaller model, context or batch",
                       static_cast<unsigned long long>(e.most),
                       static_cast<unsigned long long>(e.used),
                       static_cast<unsigned long long>(e.wanted));
  } catch (const std::bad_alloc&) {
    return report.fail(BITNET_OUT_OF_MEMORY,
                       "the host has no memory left; end other programs, or use a smaller model, "
                       "context or batch");
  } catch (const std::system_error& e) {
    return report.from(domain_of(e.code().category()), e.code().value())
        .fail(BITNET_INTERNAL, "%s", e.what());
  } catch (const std::exception& e) {
    return report.fail(BITNET_INTERNAL, "%s", e.what());
  } catch (...) {
    return report.fail(BITNET_INTERNAL,
                       "an exception of an unknown type; report it to the backend's vendor");
  }
}

// if (failed(status = f())) return status;
inline bool failed(bitnet_status status) noexcept {
  return status != BITNET_OK;
}

}  // namespace bitnet::sdk
