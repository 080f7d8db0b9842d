#pragma once
// A bar while weights are loaded; only on a terminal, gone when it is done.

#include <cstdint>

#include "terminal/console.hpp"

namespace bitnet::host {

class progress_bar {
 public:
  explicit progress_bar(const console& to)
      : to_(to), shown_(to.is_terminal() && to.shows_notes()) {}
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void update(uint64_t done, uint64_t total);  // bytes

 private:
  const console& to_;
  bool shown_;
  int percent_ = -1;
};

}  // namespace bitnet::host
