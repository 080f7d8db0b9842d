#pragma once
// Rows on their way from threads that generate to the one that compares: a fixed number of places,
// whose memory is allocated at the beginning.
//
// Threads  offer(), stop() and size(): any. take() and give_back(): one.
// Bounds   offer() takes no lock, allocates nothing and does not wait; if no place is free it drops
//          the row. It copies 4 bytes for each logit and each token, and if the other thread
//          sleeps it makes one system call to wake it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shadow/comparing.hpp"

namespace bitnet::shadow {

// Selects an even share of things, always the same ones: of share 0.1 the 10th, the 20th, ...
class even_share {
 public:
  explicit even_share(double share);  // in (0, 1]
  bool next();

 private:
  const uint64_t step_;  // in 2^-32
  uint64_t due_ = 0;
};

class waiting_rows {
 public:
  struct row {
    row_place at;
    std::vector<int32_t> tokens;
    std::vector<float> logits;
  };

  // `n` rows, each of n_vocab logits, behind at most n_context tokens.
  waiting_rows(uint32_t n, uint64_t n_vocab, uint64_t n_context);
  waiting_rows(const waiting_rows&) = delete;
  waiting_rows& operator=(const waiting_rows&) = delete;

  // False: the row is dropped, as no place is free.
  bool offer(const row_place& at, std::span<const int32_t> tokens, std::span<const float> logits);
  // Returns the row that waits longest, once there is one; nullptr after stop(). A row that is
  // offered during the call may come first. The row before must have been given back.
  const row* take();
  void give_back();
  // From now on take() returns nullptr.
  void stop();
  // How many rows wait.
  [[nodiscard]] uint32_t size() const;

 private:
  enum class phase : uint8_t { free, filling, ready, taken };
  struct place {
    std::atomic<phase> at{phase::free};
    uint64_t serial = 0;  // written while filling
    row held;
  };
  place* oldest();

  std::vector<place> places_;
  std::atomic<uint64_t> serial_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<int32_t> changes_{0};
  place* taken_ = nullptr;
};

}  // namespace bitnet::shadow
