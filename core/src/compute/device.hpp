#pragma once
// An open device, its weights, and its answers about a graph before both are compiled.
//
// Owner    The backend outlives all objects here; children are destroyed before their device.
// Threads  as the contract says of the slots; nothing is locked here.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/graph/graph.hpp"
#include "compute/trouble.hpp"

namespace bitnet::compute {

// The status of a device. Neither member is set if the device reports none.
struct activity {
  std::optional<bitnet_device_status> reported;
  std::string rejected;  // why the answer is invalid: "device_status() reports ..."
};

class device {
 public:
  device() : device_(nullptr, nullptr) {}  // none
  // `info`: the backend's description of device `index`.
  static attempt<device> open(const bitnet_backend_v0& table, uint32_t index,
                              const bitnet_device_info& info);

  [[nodiscard]] const bitnet_backend_v0& table() const { return *table_; }
  [[nodiscard]] bitnet_device* get() const { return device_.get(); }
  [[nodiscard]] uint32_t buffer_alignment_bytes() const { return buffer_alignment_bytes_; }

  // Asks device_status. A wrong answer only sets `rejected`. [any]
  [[nodiscard]] activity status() const;

  // The answer of graph_query.
  struct support {
    std::vector<uint32_t> levels;  // of each op
    bitnet_graph_estimate needs{};
    [[nodiscard]] bool complete(const graph& g) const;  // every primitive has a kernel
  };
  [[nodiscard]] attempt<support> query(const graph& g, std::span<const bitnet_tensor_desc> descs,
                                       const bitnet_program_options& options,
                                       const bitnet_kv_config* kv) const;

 private:
  device(const bitnet_backend_v0& table, handle<bitnet_device> made, uint32_t alignment)
      : table_(&table), device_(std::move(made)), buffer_alignment_bytes_(alignment) {}

  const bitnet_backend_v0* table_ = nullptr;
  handle<bitnet_device> device_;
  uint32_t buffer_alignment_bytes_ = 0;
};

// Fails with BITNET_UNSUPPORTED, naming op and format, if the device cannot run a primitive of g.
[[nodiscard]] result<void> check_support(const device& d, const graph& g,
                                         std::span<const bitnet_tensor_desc> descs,
                                         const bitnet_program_options& options,
                                         const bitnet_kv_config* kv);

// Weights on a device, from their description until they are sealed.
class weights {
 public:
  weights() : weights_(nullptr, nullptr) {}  // none
  static attempt<weights> create(const device& d, std::span<const bitnet_tensor_desc> descs,
                                 uint64_t cancel_token = 0);

  [[nodiscard]] bitnet_weights* get() const { return weights_.get(); }
  attempt<void> write(uint32_t index, uint64_t offset, std::span<const std::byte> bytes);
  attempt<void> alias(uint32_t index, std::span<const std::byte> bytes);
  attempt<void> seal(uint32_t index);

 private:
  weights(const bitnet_backend_v0& table, handle<bitnet_weights> made)
      : table_(&table), weights_(std::move(made)) {}

  const bitnet_backend_v0* table_ = nullptr;
  handle<bitnet_weights> weights_;
};

// Asks the device how it would store a tensor.
[[nodiscard]] attempt<bitnet_weight_plan> plan(const device& d, const bitnet_tensor_desc& desc);

[[nodiscard]] attempt<handle<bitnet_kv_pool>> make_pool(const device& d,
                                                        const bitnet_kv_config& config);

}  // namespace bitnet::compute
