#pragma once
// A library that exports the standard webgpu.h, opened when it is needed: a machine without one is
// an answer, not a plugin that cannot be loaded.

#include <memory>
#include <string>

#include "standard.hpp"

namespace bitnet::webgpu {

// The calls, once a library is open. It stays open as long as the process runs: it and its drivers
// start threads whose code must not go away.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a type and names
#define BITNET_WEBGPU_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  BITNET_WEBGPU_CALLS(BITNET_WEBGPU_MEMBER)
#undef BITNET_WEBGPU_MEMBER
  std::string file;  // as it was opened
  // Of wgpu-native, "29.0.3.1"; empty of others, which do not report theirs.
  std::string version;
};

// Opens `file`, or, if it is empty, the first of the usual names that is there. nullptr, and `why`
// says what the user can do, if there is none that can be used.
std::unique_ptr<library> open_library(const std::string& file, std::string& why);

}  // namespace bitnet::webgpu
