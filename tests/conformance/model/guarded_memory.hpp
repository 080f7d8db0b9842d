#pragma once
// Memory that ends at a page without access: one byte too far is a crash, with or without
// sanitizers.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <span>

namespace bitnet::conformance {

template <class T>
class guarded_memory {
 public:
  explicit guarded_memory(uint64_t count) : count_(count) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t data = (count * sizeof(T) + page - 1) / page * page;
    bytes_ = data + page;
    base_ = static_cast<uint8_t*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + data, page, PROT_NONE) != 0) throw std::bad_alloc();
    data_ = base_ + data - count * sizeof(T);
  }
  explicit guarded_memory(std::span<const T> from) : guarded_memory(from.size()) {
    if (!from.empty()) std::memcpy(data_, from.data(), from.size_bytes());
  }
  ~guarded_memory() { munmap(base_, bytes_); }
  guarded_memory(const guarded_memory&) = delete;
  guarded_memory& operator=(const guarded_memory&) = delete;

  T* data() { return reinterpret_cast<T*>(data_); }
  uint64_t size() const { return count_; }
  T& operator[](uint64_t i) { return data()[i]; }

 private:
  uint8_t *base_ = nullptr, *data_ = nullptr;
  uint64_t bytes_ = 0, count_;
};

}  // namespace bitnet::conformance
