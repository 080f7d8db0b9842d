#pragma once
// Judges a model's files while they are opened, before their content is read as a model's.
//
// Threads  A scope belongs to its thread: files that other threads map are not judged by it.

#include "base/result.hpp"

namespace bitnet::gguf {

class mapping;

class file_judge {
 public:
  virtual ~file_judge() = default;
  // Called for each mapped file. A failure ends the opening.
  virtual result<void> admit(const mapping& file) = 0;
  // Called when all files are open.
  virtual result<void> conclude() = 0;

  // While a scope lives, `judge` judges each file that this thread maps; nullptr: no judge.
  class scope {
   public:
    explicit scope(file_judge* judge);
    ~scope();
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    file_judge* const before_;
  };
  // The judge of this thread, or nullptr.
  static file_judge* current();
};

}  // namespace bitnet::gguf
