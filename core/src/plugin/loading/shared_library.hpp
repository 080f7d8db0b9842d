#pragma once
// Opens shared objects; no other file does.

#include <memory>

#include "plugin/codes/codes.hpp"
#include "plugin/loading/mapped_files.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

// Stays mapped for the life of the process unless release() is called: pointers to a plugin's code
// and data may outlive its backend.
class shared_library {
 public:
  // Loads exactly the checked file, through its descriptor and under a name that is new to the
  // linker. All symbols are bound at once and visible to no other library. The needed libraries are
  // checked before, and compared with what the linker mapped afterwards. BN-A-LOAD; BN-I-FOREIGN,
  // BN-I-RUN-PATH, BN-T-*; BN-T-CHANGED if the file is mapped and was written to, or a library
  // differs from the checked one.
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
  // Identity of the file in the kernel's list.
  [[nodiscard]] mapped_identity mapped() const;

  // Closes the handle. The library may stay mapped, if another handle or a thread's destructor
  // holds it.
  void release() noexcept;

 private:
  struct contents;
  explicit shared_library(std::unique_ptr<contents> c);
  [[nodiscard]] void* address(const char* symbol) const;

  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::plugin
