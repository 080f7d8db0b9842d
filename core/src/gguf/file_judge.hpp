#pragma once
// Judges the files of a model while they are opened, before a byte of them is read as a model's.
//
// Threads  a scope is its thread's: what other threads map meanwhile is not judged by it.

#include "base/result.hpp"

namespace bitnet::gguf {

class mapping;

class file_judge {
 public:
  virtual ~file_judge() = default;
  // Of each file that is mapped. A failure ends the opening.
  virtual result<void> admit(const mapping& file) = 0;
  // Once all of them were opened.
  virtual result<void> conclude() = 0;

  // While it lives, each file that this thread maps is judged by `judge`; nullptr: by none.
  class scope {
   public:
    explicit scope(file_judge* judge);
    ~scope();
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    file_judge* const before_;
  };
  // Of this thread now, or nullptr.
  static file_judge* current();
};

}  // namespace bitnet::gguf
