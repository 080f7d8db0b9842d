// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// The edge between C++ and the C contract: nothing thrown gets past it, and every failure is said.

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "bitnet/abi/base.h"

namespace bitnet::sdk {

// Where a call stands: the caller's error and the slot's name.
class reporter {
 public:
  reporter(bitnet_error* err, const char* where) noexcept : err_(err), where_(where) {}

  // Fills the caller's error, if there is one, and returns `code` so that it can be returned.
  [[gnu::format(printf, 3, 4)]] bitnet_status fail(bitnet_status code, const char* format,
                                                   ...) const noexcept {
    if (err_ && err_->struct_size >= sizeof(bitnet_error)) {
      std::memset(err_, 0, sizeof *err_);
      err_->struct_size = sizeof *err_;
      err_->code = code;
      if (code == BITNET_UNAVAILABLE) err_->flags = BITNET_ERROR_USER_FIXABLE;
      std::snprintf(err_->where, sizeof err_->where, "%s", where_);
      va_list values;
      va_start(values, format);
      std::vsnprintf(err_->message, sizeof err_->message, format, values);
      va_end(values);
    }
    return code;
  }

 private:
  bitnet_error* err_;
  const char* where_;
};

// Runs `body(reporter)`, which returns a bitnet_status, and turns exceptions into one.
template <class Body>
bitnet_status guarded(bitnet_error* err, const char* where, Body&& body) noexcept {
  const reporter report(err, where);
  try {
    return body(report);
  } catch (const std::bad_alloc&) {
    return report.fail(BITNET_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return report.fail(BITNET_INTERNAL, "%s", e.what());
  } catch (...) {
    return report.fail(BITNET_INTERNAL, "unknown exception");
  }
}

// if (failed(status = f())) return status;
inline bool failed(bitnet_status status) noexcept {
  return status != BITNET_OK;
}

}  // namespace bitnet::sdk
