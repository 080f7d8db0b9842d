#pragma once
// A library of WebGPU as one of gpu-common's platforms.

#include <string>
#include <vector>

#include "adapter.hpp"
#include "bitnet/sdk/host.hpp"

namespace bitnet::webgpu {

struct settings {
  std::string library;  // empty: the usual names are tried
  wishes devices;
};

class platform final : public gpu::platform {
 public:
  platform(std::unique_ptr<library> calls, const sdk::host& services, const wishes& user)
      : services_(services), user_(user), calls_(std::move(calls)), runtime_(*calls_) {}
  ~platform() override;
  platform(const platform&) = delete;
  platform& operator=(const platform&) = delete;

  // Lists the adapters that pass the known-answer test.
  bitnet_status start(const sdk::reporter& report);

  const std::vector<gpu::facts>& devices() const noexcept override { return facts_; }
  bitnet_status open(uint32_t index, std::unique_ptr<gpu::device>& out,
                     const sdk::reporter& report) override;

 private:
  const sdk::host& services_;
  const wishes user_;
  const std::unique_ptr<library> calls_;
  runtime runtime_;
  std::vector<adapter> adapters_;
  std::vector<gpu::facts> facts_;
};

}  // namespace bitnet::webgpu
