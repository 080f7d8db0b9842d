// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Copies of rows in large pages, or in a code of fewer bytes. The kernels that read the rows make
// them on the way, so no call waits for them.
//
// Why      a mapped file lies in small pages. If a step reads hundreds of megabytes, page walks
//          take a part of its time. A code of fewer bytes is read faster.
// Owner    a weight set has the room, each of its aliased tensors a copy; both end with the set.
// Threads  any; a run of rows is copied by one thread.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "bitnet/sdk/compute/weight.hpp"
#include "bitnet/sdk/handle.hpp"

namespace bitnet::sdk {

// One allocation for all copies of a set: a single matrix would end in small pages.
class copy_room {
 public:
  // `enough` returns whether `bytes` more may be used; nullptr: nothing is copied.
  copy_room(budget* from, bool (*enough)(uint64_t bytes)) : from_(from), enough_(enough) {}

  [[nodiscard]] bool wanted() const noexcept { return enough_ != nullptr; }
  // Reserves `bytes` for a copy; returns their offset.
  uint64_t reserve(uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    const uint64_t at = bytes_;
    bytes_ += (bytes + memory::alignment - 1) / memory::alignment * memory::alignment;
    return at;
  }
  // Bytes of all reservations, once memory is allocated.
  [[nodiscard]] uint64_t bytes() const noexcept { return all_.size(); }
  // nullptr if there is no room, or if the reservation came after the allocation.
  uint8_t* place(uint64_t at, uint64_t bytes) noexcept {
    std::call_once(asked_, [this]() noexcept {
      const std::scoped_lock lock(mutex_);
      try {
        constexpr uint64_t large_page = uint64_t{2} << 20;
        if (enough_ && enough_(bytes_)) all_ = memory(bytes_, from_, large_page);
      } catch (const std::bad_alloc&) {
        all_ = memory();  // without copies all works as before
      }
    });
    return bytes <= all_.size() && at <= all_.size() - bytes ? all_.data() + at : nullptr;
  }

 private:
  budget* const from_;
  bool (*const enough_)(uint64_t bytes);
  std::mutex mutex_;    // guards bytes_
  uint64_t bytes_ = 0;  // of all reservations
  std::once_flag asked_;
  memory all_;
};

// The code of a copy whose rows are not those of the original.
struct copy_code {
  // Bytes of a coded row; 0: this weight has no code, its rows are copied unchanged.
  uint64_t (*row_bytes)(const weight&) = nullptr;
  // Writes rows [first, last), one after the other. False: the code cannot express them; no copy is
  // made.
  bool (*write)(const weight&, const void* author_data, uint64_t first, uint64_t last,
                uint8_t* out) noexcept = nullptr;
};

class row_copy {
 public:
  static constexpr uint64_t run = 16;  // rows; unit in which work is shared out
  // `patience`: reads before copying starts, since a copy costs about what so many steps gain.
  // `parts`: number of steps that share the work of copying.
  static constexpr uint64_t patience = 32, parts = 8;

  row_copy(copy_room& room, uint64_t rows, uint64_t row_bytes)
      : room_(room),
        offset_(room.reserve(rows * row_bytes)),
        rows_(rows),
        row_bytes_(row_bytes),
        runs_((rows + run - 1) / run),
        taken_(new std::atomic<bool>[runs_]()) {}
  // `w` outlives it, and so does the author's data.
  row_copy(copy_room& room, const weight& w, const copy_code& code, const void* author_data)
      : row_copy(room, w.m, code.row_bytes(w)) {
    coded_ = &w;
    write_ = code.write;
    author_data_ = author_data;
  }

  // True if the copy's rows are in a code.
  [[nodiscard]] bool coded() const noexcept { return coded_ != nullptr; }
  [[nodiscard]] uint64_t row_bytes() const noexcept { return row_bytes_; }
  // Counts the bytes that reading a coded copy saved. The counter of read bytes subtracts the sum.
  void spare(uint64_t bytes) noexcept { spared_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t take_spared() noexcept { return spared_.exchange(0, std::memory_order_relaxed); }

  // All rows once they are copied; nullptr until then.
  [[nodiscard]] const uint8_t* data() const noexcept {
    return data_.load(std::memory_order_acquire);
  }
  // Called while rows [first, last) of `from` are read. Copies those whose turn has come, in whole
  // runs, from the room's first page on, since new pages cost more than copying into them.
  void add(const uint8_t* from, uint64_t first, uint64_t last) noexcept {
    const uint64_t reads = first == 0 ? reads_.fetch_add(1, std::memory_order_relaxed) + 1
                                      : reads_.load(std::memory_order_relaxed);
    if (reads <= patience || refused_.load(std::memory_order_relaxed)) return;
    uint8_t* const place = room_.place(offset_, rows_ * row_bytes_);
    if (place == nullptr) return;
    const uint64_t part = std::min(reads - patience, parts);
    const uint64_t until = part == parts ? room_.bytes() : room_.bytes() / parts * part;
    for (uint64_t i = (first + run - 1) / run; i < runs_; ++i) {
      const uint64_t begin = i * run, end = std::min(begin + run, rows_);
      if (end > last || offset_ + end * row_bytes_ > until) break;
      if (taken_[i].load(std::memory_order_relaxed)) continue;
      if (taken_[i].exchange(true, std::memory_order_relaxed)) continue;
      if (!copy(from, begin, end, place + begin * row_bytes_)) return refused_.store(true);
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == runs_)
        data_.store(place, std::memory_order_release);
    }
  }

 private:
  bool copy(const uint8_t* from, uint64_t first, uint64_t last, uint8_t* to) const noexcept {
    if (coded_) return write_(*coded_, author_data_, first, last, to);
    std::memcpy(to, from + first * row_bytes_, (last - first) * row_bytes_);
    return true;
  }

  copy_room& room_;
  const uint64_t offset_, rows_, row_bytes_, runs_;
  const std::unique_ptr<std::atomic<bool>[]> taken_;
  std::atomic<uint64_t> reads_{0}, done_{0};  // of row 0; runs
  std::atomic<const uint8_t*> data_{nullptr};
  const weight* coded_ = nullptr;
  decltype(copy_code::write) write_ = nullptr;
  const void* author_data_ = nullptr;
  std::atomic<bool> refused_{false};
  std::atomic<uint64_t> spared_{0};  // bytes
};

}  // namespace bitnet::sdk
