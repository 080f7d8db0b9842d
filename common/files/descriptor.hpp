#pragma once
// The descriptor of an open file; the destructor closes it.

#include <unistd.h>

#include <utility>

namespace bitnet::files {

class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  // The caller closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

}  // namespace bitnet::files
