#pragma once
// A kernel, compiled for each way in which its bindings share memory, when a recording first needs
// it.

#include <memory>
#include <vector>

#include "gpu-common/driver.hpp"
#include "kernel_text.hpp"
#include "runtime.hpp"

namespace bitnet::webgpu {

class pipeline {
 public:
  explicit pipeline(const connection& d) noexcept : device_(d) {}
  ~pipeline();
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  bitnet_status compile(const gpu::kernel_spec& spec, const dialect& language,
                        const shared_bindings& same, const sdk::reporter& report);
  compute_pipeline_handle handle() const noexcept { return pipeline_; }
  bind_group_layout_handle layout() const noexcept { return bindings_; }

 private:
  void make(const gpu::kernel_spec& spec, const std::string& text, const shared_bindings& same);

  const connection& device_;
  bind_group_layout_handle bindings_ = nullptr;
  compute_pipeline_handle pipeline_ = nullptr;
};

class kernel final : public gpu::kernel {
 public:
  kernel(const connection& d, const dialect& language, const gpu::kernel_spec& s)
      : spec(s), device_(d), language_(language) {}

  bitnet_status form(const shared_bindings& same, const pipeline*& out,
                     const sdk::reporter& report) const;

  const gpu::kernel_spec spec;

 private:
  const connection& device_;
  const dialect language_;
  // Mutable: compiling on demand does not change the kernel's meaning.
  mutable std::vector<std::pair<shared_bindings, std::unique_ptr<pipeline>>> forms_;
};

}  // namespace bitnet::webgpu
