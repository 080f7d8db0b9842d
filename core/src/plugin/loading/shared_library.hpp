#pragma once
// The one place that opens shared objects.

#include <memory>

#include "plugin/codes/codes.hpp"
#include "plugin/loading/mapped_files.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

// Stays mapped for the life of the process unless release() is called: code and data of a plugin
// may be referred to after its backend is closed.
class shared_library {
 public:
  // Loads exactly the file that was checked, through its descriptor, whatever its path leads to by
  // now, under a name that is new to the linker; all symbols bound at once and visible to no other
  // library. The libraries that it needs are checked before, and compared with what the linker
  // mapped afterwards. BN-A-LOAD; BN-I-FOREIGN, BN-I-RUN-PATH, BN-T-*; BN-T-CHANGED if the file is
  // mapped and was written to, or a library is another one than was judged.
  static checked<shared_library> open(trusted_file file);

  shared_library(shared_library&&) noexcept;
  shared_library& operator=(shared_library&&) noexcept;
  ~shared_library();

  // nullptr if there is no such symbol.
  template <class Function>
  [[nodiscard]] Function* function(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }
  [[nodiscard]] const file_identity& file() const;
  [[nodiscard]] const std::shared_ptr<const trusted_file>& opened() const;
  // As the kernel lists it.
  [[nodiscard]] mapped_identity mapped() const;

  // Gives the library back to the linker. It may go on being mapped: another copy of the handle, or
  // a destructor of a thread, may hold it.
  void release() noexcept;

 private:
  struct contents;
  explicit shared_library(std::unique_ptr<contents> c);
  [[nodiscard]] void* address(const char* symbol) const;

  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::plugin
