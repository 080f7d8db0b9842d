#pragma once
// The one place that opens shared objects.

#include <filesystem>

#include "plugin/codes.hpp"

namespace bitnet::plugin {

class shared_library {
 public:
  // Opens exactly this absolute path, all symbols bound at once and visible to nobody else. The
  // object stays mapped for the life of the process: code and data of a plugin may be referred to
  // after its backend is closed. BN-A-LOAD.
  static checked<shared_library> open(const std::filesystem::path& file);

  // nullptr if there is no such symbol.
  template <class Function>
  [[nodiscard]] Function* function(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }

 private:
  explicit shared_library(void* handle) : handle_(handle) {}
  [[nodiscard]] void* address(const char* symbol) const;

  void* handle_;
};

}  // namespace bitnet::plugin
