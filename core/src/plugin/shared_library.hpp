#pragma once
// The one place that opens shared objects.

#include "plugin/codes.hpp"
#include "plugin/trust.hpp"

namespace bitnet::plugin {

class shared_library {
 public:
  // Loads exactly the file that was checked, through its descriptor, whatever its path leads to by
  // now; all symbols bound at once and visible to nobody else. The object stays mapped, and a copy
  // of the descriptor open, for the life of the process: code and data of a plugin may be referred
  // to after its backend is closed, and the linker knows the object by the descriptor's number. A
  // file that is mapped already is that object again. BN-A-LOAD; BN-T-CHANGED if a mapped file was
  // written to.
  static checked<shared_library> open(const trusted_file& file);

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
