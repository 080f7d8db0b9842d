#pragma once
// The copy of an output head for its two-stage form, see kernels.hpp: a byte for each element, rows
// padded to 128, and three numbers for each row.
//
// Memory   the first step that asks only for the largest logits allocates it, if as much again
//          stays free on the device and in the budget. It is counted like weights. If there is no
//          room, all logits are computed. Estimates leave it out.

#include <memory>
#include <mutex>
#include <optional>

#include "opened.hpp"

namespace bitnet::gpu {

struct device_weight;

class head_copy {
 public:
  // True if the device has the kernels, no setting switches the two-stage head off, and it can save
  // time.
  static bool fits(const opened& device, const device_weight& w);
  static uint64_t bytes_of(const opened& device, const device_weight& w);

  explicit head_copy(opened& device) noexcept : device_(device) {}

  // The first call makes the copy on the device and waits for it. `there` is false if there is no
  // room. [any]
  bitnet_status make(const device_weight& w, bool& there, const sdk::reporter& report);
  binding codes() const noexcept { return codes_; }
  binding norms() const noexcept { return norms_; }

 private:
  bitnet_status allocate(uint64_t bytes, const sdk::reporter& report);
  bitnet_status compute(const device_weight& w, const sdk::reporter& report);

  opened& device_;
  std::mutex making_;
  bool asked_ = false;
  std::optional<holding> held_;
  std::unique_ptr<buffer> memory_;  // null: no room
  binding codes_, norms_;
};

// The first stage's results for the second, for the output rows of a step. One per binding.
class head_scratch {
 public:
  // The first call allocates. `there` is false if there is no room.
  bitnet_status take(opened& device, const device_weight& w, uint32_t outputs, bool lists,
                     bool& there, const sdk::reporter& report);
  binding states() const noexcept { return states_; }
  binding counts() const noexcept { return counts_; }
  binding bounds() const noexcept { return bounds_; }
  binding found() const noexcept { return found_; }

 private:
  bool asked_ = false;
  lease memory_;
  binding states_, counts_, bounds_, found_;
};

}  // namespace bitnet::gpu
