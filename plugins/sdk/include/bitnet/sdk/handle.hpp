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

// Opaque handles point to the plugin's own objects: `Handle` is the contract's type for `Object`.
template <class Handle, class Object>
struct handle {
  // The core owns the object until it returns it through take().
  static Handle* give(std::unique_ptr<Object> object) noexcept {
    return reinterpret_cast<Handle*>(object.release());
  }
  static std::unique_ptr<Object> take(Handle* h) noexcept {
    return std::unique_ptr<Object>(reinterpret_cast<Object*>(h));
  }
  static Object* get(Handle* h) noexcept { return reinterpret_cast<Object*>(h); }
};

// Zeroed host memory, aligned to 64 bytes or to `align`. Large blocks take no physical page before
// first use, and then large pages if the system has them and the device's rules permit them:
// allocating and finding small pages would take longer than using them.
class memory {
 public:
  static constexpr uint64_t alignment = 64;

  memory() = default;
  // `from`, if any, accounts for the bytes and outlives this object.
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
    // Removes the node policy, since the allocator reuses these pages for other purposes.
    if (placed_) nodes::bind(first_page(), end_of_pages(), nodes::usual, {});
    std::free(block_);
    if (from_) from_->give(size_);
  }

  // Call it before first use. On machines with several nodes each row of a matrix is placed on the
  // node of the worker that reads it (see parts_of). Small blocks stay as they are.
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
  // Places memory that all workers read: pages go to the nodes in turn.
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
  static constexpr uint64_t least_placed = 256 << 10;  // bytes: smaller ones have too few pages
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
