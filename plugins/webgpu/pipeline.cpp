#include "pipeline.hpp"

#include <string>

namespace bitnet::webgpu {

pipeline::~pipeline() {
  const library& wgpu = device_.wgpu();
  const std::scoped_lock held(device_.on.lock);
  if (pipeline_) wgpu.ComputePipelineRelease(pipeline_);
  if (bindings_) wgpu.BindGroupLayoutRelease(bindings_);
}

bitnet_status pipeline::compile(const gpu::kernel_spec& spec, const dialect& language,
                                const shared_bindings& same, const sdk::reporter& report) {
  const std::string text = text_of(spec, language, same);
  if (text.empty()) return report.fail(BITNET_INTERNAL, "no kernel %s", gpu::kernel_label(spec.id));
  const std::string call = std::string("compiling ") + name_of(spec.id);
  const std::scoped_lock held(device_.on.lock);
  return device_.checked(call.c_str(), [&] { make(spec, text, same); }, report);
}

void pipeline::make(const gpu::kernel_spec& spec, const std::string& text,
                    const shared_bindings& same) {
  const library& wgpu = device_.wgpu();
  std::vector<bind_group_layout_entry> entries;
  const auto add = [&](uint32_t binding, uint32_t type) {
    bind_group_layout_entry e;
    e.binding = binding;
    e.visibility = stage_compute;
    e.buffer.type = type;
    entries.push_back(e);
  };
  add(0, binding_uniform);
  for (uint32_t i = 1; i < webgpu::bindings_of(spec.id); ++i)
    if (same[i] == i) add(i, binding_storage);
  add(parameter_binding, binding_uniform);
  bind_group_layout_descriptor set;
  set.entryCount = entries.size();
  set.entries = entries.data();
  bindings_ = wgpu.DeviceCreateBindGroupLayout(device_.device, &set);

  shader_source_wgsl source;
  source.chain.sType = source_wgsl;
  source.code = {text.data(), text.size()};
  shader_module_descriptor code;
  code.nextInChain = &source.chain;
  code.label = {name_of(spec.id), SIZE_MAX};
  const shader_module_handle module = wgpu.DeviceCreateShaderModule(device_.device, &code);
  if (!bindings_ || !module) return;  // the error scope reports why

  pipeline_layout_descriptor sets;
  sets.bindGroupLayoutCount = 1;
  sets.bindGroupLayouts = &bindings_;
  const pipeline_layout_handle layout = wgpu.DeviceCreatePipelineLayout(device_.device, &sets);
  compute_pipeline_descriptor wanted;
  wanted.label = code.label;
  wanted.layout = layout;
  wanted.compute.module = module;
  wanted.compute.entryPoint = {"main", SIZE_MAX};
  pipeline_ = wgpu.DeviceCreateComputePipeline(device_.device, &wanted);
  if (layout) wgpu.PipelineLayoutRelease(layout);
  wgpu.ShaderModuleRelease(module);
}

bitnet_status kernel::form(const shared_bindings& same, const pipeline*& out,
                           const sdk::reporter& report) const {
  for (const auto& [known, compiled] : forms_) {
    if (known != same) continue;
    out = compiled.get();
    return BITNET_OK;
  }
  auto made = std::make_unique<pipeline>(device_);
  if (bitnet_status s = made->compile(spec, language_, same, report); sdk::failed(s)) return s;
  out = forms_.emplace_back(same, std::move(made)).second.get();
  return BITNET_OK;
}

}  // namespace bitnet::webgpu
