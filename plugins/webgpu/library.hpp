#pragma once
// A library that exports the standard webgpu.h, opened on first use, so that the plugin loads on a
// machine without one.

#include <memory>
#include <string>

#include "standard.hpp"

namespace bitnet::webgpu {

// The calls of an open library. It is never unloaded, because it and its drivers start threads that
// run its code.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a type and names
#define BITNET_WEBGPU_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  BITNET_WEBGPU_CALLS(BITNET_WEBGPU_MEMBER)
#undef BITNET_WEBGPU_MEMBER
  std::string file;  // as it was opened
  // "29.0.3.1" for wgpu-native; empty for other libraries, which do not report theirs.
  std::string version;
};

// Opens `file`, or, if it is empty, the first of the usual names that exists. If none can be used
// it returns nullptr, and `why` says what the user can do.
std::unique_ptr<library> open_library(const std::string& file, std::string& why);

}  // namespace bitnet::webgpu
