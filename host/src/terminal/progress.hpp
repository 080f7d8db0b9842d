#pragma once
// A progress bar for reading or writing weights; on a terminal only, erased at the end.

#include <cstdint>

#include "terminal/console.hpp"

namespace bitnet::host {

class progress_bar {
 public:
  // `doing`: "loading"; borrowed.
  progress_bar(const console& to, const char* doing)
      : to_(to), doing_(doing), shown_(to.is_terminal() && to.shows_notes()) {}
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void update(uint64_t done, uint64_t total);  // bytes

 private:
  const console& to_;
  const char* doing_;
  bool shown_;
  int percent_ = -1;
};

}  // namespace bitnet::host
