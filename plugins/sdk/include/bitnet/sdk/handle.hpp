// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Ownership on the plugin's side of the edge: opaque handles and raw memory.

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "bitnet/sdk/budget.hpp"

namespace bitnet::sdk {

// Opaque handles are pointers to the plugin's own objects: `Handle` is the contract's name for one
// `Object`.
template <class Handle, class Object>
struct handle {
  // The core owns the object from here on, until it gives it back through take().
  static Handle* give(std::unique_ptr<Object> object) noexcept {
    return reinterpret_cast<Handle*>(object.release());
  }
  static std::unique_ptr<Object> take(Handle* h) noexcept {
    return std::unique_ptr<Object>(reinterpret_cast<Object*>(h));
  }
  static Object* get(Handle* h) noexcept { return reinterpret_cast<Object*>(h); }
};

// Zeroed host memory, aligned to 64 bytes unless it is to be more. Large blocks take no physical
// page before first use, and then large pages where the system has them, unless the device's rules
// say otherwise: getting and finding small ones would take longer than using them.
class memory {
 public:
  static constexpr uint64_t alignment = 64;

  memory() = default;
  // `from`, if any, lends the bytes and outlives them.
  explicit memory(uint64_t bytes, budget* from = nullptr, uint64_t align = alignment)
      : size_(bytes) {
    if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
    if (from) from->take(bytes);
    block_ = std::calloc(1, bytes + align);
    if (!block_) {
      if (from) from->give(bytes);
      throw std::bad_alloc();
    }
    from_ = from;
    const auto address = reinterpret_cast<uintptr_t>(block_);
    data_ = static_cast<uint8_t*>(block_) + (align - address % align) % align;
#if defined(__linux__)
    constexpr uint64_t page = uint64_t{2} << 20;
    const uint64_t first = (address + page - 1) / page * page,
                   last = (address + bytes) / page * page;
    const bool large = !from || from->rules().large_pages;
    if (first < last)
      ::madvise(static_cast<uint8_t*>(block_) + (first - address), last - first,
                large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
  }
  memory(memory&& other) noexcept { swap(other); }
  memory& operator=(memory&& other) noexcept {
    memory(std::move(other)).swap(*this);
    return *this;
  }
  ~memory() {
    // What the allocator gives to others next has no node.
    if (placed_) nodes::bind(first_page(), end_of_pages(), nodes::usual, {});
    std::free(block_);
    if (from_) from_->give(size_);
  }

  // On machines with several nodes, before first use: rows of a matrix lie where the workers are
  // that read them (see parts_of). Nothing is done for what is small.
  void place_rows(uint64_t rows, uint64_t grain) {
    if (!worth_placing()) return;
    for (const node_part& p :
         parts_of(address(), size_, rows, grain, from_->rules().nodes, page())) {
      nodes::mask one;
      one.add(p.node);
      nodes::bind(p.first, p.last, nodes::preferred, one);
    }
    placed_ = true;
  }
  // The same for what all workers read: the nodes have a page each in turn.
  void spread() {
    if (!worth_placing()) return;
    nodes::mask all;
    for (const uint32_t node : from_->rules().nodes) all.add(node);
    nodes::bind(first_page(), end_of_pages(), nodes::interleaved, all);
    placed_ = true;
  }

  uint8_t* data() const noexcept { return data_; }
  uint64_t size() const noexcept { return size_; }

 private:
  static constexpr uint64_t least_placed = 256 << 10;  // bytes: smaller ones would be all borders
  bool worth_placing() const noexcept {
    return from_ && !from_->rules().nodes.empty() && size_ >= least_placed;
  }
  uint64_t address() const noexcept { return reinterpret_cast<uintptr_t>(data_); }
  uint64_t first_page() const noexcept { return (address() + page() - 1) / page() * page(); }
  uint64_t end_of_pages() const noexcept { return (address() + size_) / page() * page(); }
  static uint64_t page() noexcept {
#if defined(__linux__)
    static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
#else
    return 4096;
#endif
  }

  void swap(memory& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(from_, other.from_);
    std::swap(placed_, other.placed_);
  }

  void* block_ = nullptr;
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  budget* from_ = nullptr;
  bool placed_ = false;  // on nodes
};

}  // namespace bitnet::sdk
