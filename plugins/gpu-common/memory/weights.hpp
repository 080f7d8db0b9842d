#pragma once
// Weights in device memory: the host buffers the stream, and sealing packs and uploads it.
//
// Matrices that are larger than a kernel can see of one buffer are cut into parts of whole rows.
// Rank-1 tensors become f32; the host keeps a copy of them, as it computes the rotations of ROPE
// itself.

#include <vector>

#include "bitnet/sdk/compute/tensor.hpp"
#include "gpu-common/opened.hpp"
#include "gpu-common/top_head.hpp"

namespace bitnet::gpu {

struct weight_part {
  binding place;
  uint64_t first_row, n_rows;
};

struct device_weight {
  sdk::tensor tensor;  // description, scales, and the bytes until it is sealed
  bool sealed = false;
  sdk::weight view{};  // no data; rank 1: f32 on the host
  uint64_t words = 0;  // of a row on the device
  std::vector<weight_part> parts;
  binding scales;                   // ternary only
  std::vector<float> host;          // rank 1, and f32 of one row
  std::unique_ptr<head_copy> copy;  // for the two-stage head; null if the weight is no head

  uint64_t device_bytes() const noexcept { return 4 * words * view.m; }
  // Bytes that a product with this weight reads, with the scales of groups.
  uint64_t read_bytes() const noexcept {
    const uint64_t groups = view.scale_group == 0 ? 0 : view.k / view.scale_group;
    return device_bytes() + sizeof(float) * groups * view.m;
  }
};

class weight_set {
 public:
  using tensor_type = device_weight;

  explicit weight_set(opened& device, uint64_t cancel_token = 0) noexcept
      : device_(device), cancel_token_(cancel_token), held_(device.held_bytes, device.lent) {}
  ~weight_set() {
    if (buffers_.empty()) return;  // planned only
    device_.settle();
    const std::scoped_lock lock(device_.lock);
    for (device_weight& w : tensors_) w.copy.reset();
    buffers_.clear();
  }
  weight_set(const weight_set&) = delete;
  weight_set& operator=(const weight_set&) = delete;

  // BITNET_UNSUPPORTED for weights that this device cannot hold.
  static bitnet_status plan(const opened& device, const bitnet_tensor_desc* desc,
                            bitnet_weight_plan& out, const sdk::reporter& report);

  // scales_are::to_come: graphs can be checked at once, but no memory is allocated.
  bitnet_status create(const bitnet_tensor_desc* descs, uint32_t desc_size, uint32_t n,
                       sdk::scales_are scales_now, const sdk::reporter& report);
  uint64_t device_bytes() const noexcept { return bytes_; }
  bitnet_status write(uint32_t index, uint64_t offset, const void* data, uint64_t bytes,
                      const sdk::reporter& report);
  bitnet_status alias(uint32_t index, const void*, uint64_t, const sdk::reporter& report) const {
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "tensor %u cannot be aliased: this device has its own memory", index);
  }
  bitnet_status seal(uint32_t index, const sdk::reporter& report);

  uint64_t size() const noexcept { return tensors_.size(); }
  const device_weight& at(uint64_t index) const noexcept { return tensors_[index]; }

 private:
  bitnet_status place(bool allocate, const sdk::reporter& report);
  bitnet_status check_unsealed(uint32_t index, const sdk::reporter& report) const;
  bitnet_status upload(const device_weight& w, const uint8_t* rows, const sdk::reporter& report);

  opened& device_;
  const uint64_t cancel_token_;
  std::vector<device_weight> tensors_;
  holding held_;
  std::vector<std::unique_ptr<buffer>> buffers_;
  uint64_t bytes_ = 0;
};

// The weight sets of a program.
using weights = sdk::weight_list<weight_set>;

}  // namespace bitnet::gpu
