// What plugins/webgpu/standard.hpp declares has the shape that the header of a library says.

#include <gtest/gtest.h>
#include <wgpu.h>  // webgpu.h, and what wgpu-native adds

#include <cstddef>
#include <type_traits>

#include "standard.hpp"

namespace bitnet::webgpu {
namespace {

// NOLINTBEGIN(bugprone-sizeof-expression, bugprone-macro-parentheses): of pointers, and of types
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME(ours, theirs, member)                                    \
  static_assert(offsetof(ours, member) == offsetof(theirs, member) && \
                sizeof(ours::member) == sizeof(theirs::member))

SAME_SIZE(flag, WGPUBool);
SAME_SIZE(flags, WGPUFlags);
SAME_SIZE(future, WGPUFuture);
SAME_SIZE(string_view, WGPUStringView);
SAME(string_view, WGPUStringView, length);
SAME_SIZE(chained_struct, WGPUChainedStruct);
SAME(chained_struct, WGPUChainedStruct, sType);

SAME_SIZE(instance_descriptor, WGPUInstanceDescriptor);
SAME(instance_descriptor, WGPUInstanceDescriptor, requiredLimits);
SAME_SIZE(request_adapter_options, WGPURequestAdapterOptions);
SAME(request_adapter_options, WGPURequestAdapterOptions, featureLevel);
SAME(request_adapter_options, WGPURequestAdapterOptions, powerPreference);
SAME(request_adapter_options, WGPURequestAdapterOptions, forceFallbackAdapter);
SAME(request_adapter_options, WGPURequestAdapterOptions, backendType);
SAME_SIZE(request_adapter_callback_info, WGPURequestAdapterCallbackInfo);
SAME(request_adapter_callback_info, WGPURequestAdapterCallbackInfo, callback);
SAME(request_adapter_callback_info, WGPURequestAdapterCallbackInfo, userdata1);
SAME_SIZE(adapter_info, WGPUAdapterInfo);
SAME(adapter_info, WGPUAdapterInfo, description);
SAME(adapter_info, WGPUAdapterInfo, backendType);
SAME(adapter_info, WGPUAdapterInfo, adapterType);
SAME(adapter_info, WGPUAdapterInfo, subgroupMaxSize);
SAME_SIZE(limits, WGPULimits);
SAME(limits, WGPULimits, maxStorageBuffersPerShaderStage);
SAME(limits, WGPULimits, maxStorageBufferBindingSize);
SAME(limits, WGPULimits, minUniformBufferOffsetAlignment);
SAME(limits, WGPULimits, minStorageBufferOffsetAlignment);
SAME(limits, WGPULimits, maxBufferSize);
SAME(limits, WGPULimits, maxComputeWorkgroupStorageSize);
SAME(limits, WGPULimits, maxComputeInvocationsPerWorkgroup);
SAME(limits, WGPULimits, maxComputeWorkgroupSizeX);
SAME(limits, WGPULimits, maxComputeWorkgroupsPerDimension);
SAME(limits, WGPULimits, maxImmediateSize);

SAME_SIZE(device_descriptor, WGPUDeviceDescriptor);
SAME(device_descriptor, WGPUDeviceDescriptor, requiredFeatures);
SAME(device_descriptor, WGPUDeviceDescriptor, requiredLimits);
SAME(device_descriptor, WGPUDeviceDescriptor, deviceLostCallbackInfo);
SAME(device_descriptor, WGPUDeviceDescriptor, uncapturedErrorCallbackInfo);
SAME(device_lost_callback_info, WGPUDeviceLostCallbackInfo, callback);
SAME(uncaptured_error_callback_info, WGPUUncapturedErrorCallbackInfo, callback);
SAME_SIZE(request_device_callback_info, WGPURequestDeviceCallbackInfo);
SAME(request_device_callback_info, WGPURequestDeviceCallbackInfo, userdata2);

SAME_SIZE(buffer_descriptor, WGPUBufferDescriptor);
SAME(buffer_descriptor, WGPUBufferDescriptor, usage);
SAME(buffer_descriptor, WGPUBufferDescriptor, size);
SAME_SIZE(buffer_map_callback_info, WGPUBufferMapCallbackInfo);
SAME(buffer_map_callback_info, WGPUBufferMapCallbackInfo, callback);
SAME_SIZE(queue_work_done_callback_info, WGPUQueueWorkDoneCallbackInfo);
SAME(queue_work_done_callback_info, WGPUQueueWorkDoneCallbackInfo, callback);
SAME_SIZE(pop_error_scope_callback_info, WGPUPopErrorScopeCallbackInfo);
SAME(pop_error_scope_callback_info, WGPUPopErrorScopeCallbackInfo, callback);

SAME_SIZE(shader_module_descriptor, WGPUShaderModuleDescriptor);
SAME_SIZE(shader_source_wgsl, WGPUShaderSourceWGSL);
SAME(shader_source_wgsl, WGPUShaderSourceWGSL, code);
SAME_SIZE(compute_pipeline_descriptor, WGPUComputePipelineDescriptor);
SAME(compute_pipeline_descriptor, WGPUComputePipelineDescriptor, layout);
SAME(compute_pipeline_descriptor, WGPUComputePipelineDescriptor, compute);
SAME(compute_state, WGPUComputeState, module);
SAME(compute_state, WGPUComputeState, entryPoint);
SAME(compute_state, WGPUComputeState, constants);

SAME_SIZE(bind_group_layout_entry, WGPUBindGroupLayoutEntry);
SAME(bind_group_layout_entry, WGPUBindGroupLayoutEntry, visibility);
SAME(bind_group_layout_entry, WGPUBindGroupLayoutEntry, bindingArraySize);
SAME(bind_group_layout_entry, WGPUBindGroupLayoutEntry, buffer);
SAME(bind_group_layout_entry, WGPUBindGroupLayoutEntry, sampler);
SAME(bind_group_layout_entry, WGPUBindGroupLayoutEntry, texture);
SAME(bind_group_layout_entry, WGPUBindGroupLayoutEntry, storageTexture);
SAME(buffer_binding_layout, WGPUBufferBindingLayout, type);
SAME(buffer_binding_layout, WGPUBufferBindingLayout, minBindingSize);
SAME_SIZE(bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor);
SAME(bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor, entries);
SAME_SIZE(pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor);
SAME(pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor, bindGroupLayouts);
SAME(pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor, immediateSize);
SAME_SIZE(bind_group_entry, WGPUBindGroupEntry);
SAME(bind_group_entry, WGPUBindGroupEntry, buffer);
SAME(bind_group_entry, WGPUBindGroupEntry, offset);
SAME(bind_group_entry, WGPUBindGroupEntry, size);
SAME_SIZE(bind_group_descriptor, WGPUBindGroupDescriptor);
SAME(bind_group_descriptor, WGPUBindGroupDescriptor, layout);
SAME(bind_group_descriptor, WGPUBindGroupDescriptor, entries);

SAME_SIZE(command_encoder_descriptor, WGPUCommandEncoderDescriptor);
SAME_SIZE(compute_pass_descriptor, WGPUComputePassDescriptor);
SAME(compute_pass_descriptor, WGPUComputePassDescriptor, timestampWrites);
SAME_SIZE(pass_timestamp_writes, WGPUPassTimestampWrites);
SAME(pass_timestamp_writes, WGPUPassTimestampWrites, endOfPassWriteIndex);
SAME_SIZE(query_set_descriptor, WGPUQuerySetDescriptor);
SAME(query_set_descriptor, WGPUQuerySetDescriptor, type);
SAME(query_set_descriptor, WGPUQuerySetDescriptor, count);

static_assert(sizeof(native_instance_extras) >= sizeof(WGPUInstanceExtras));
SAME(native_instance_extras, WGPUInstanceExtras, backends);

// Each call has as many parameters, of the same sizes, and a result of the same size.
template <class Ours, class Theirs>
struct same_call : std::false_type {};
template <class OurResult, class... Ours, class TheirResult, class... Theirs>
struct same_call<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> {
  static constexpr bool results() {
    if constexpr (std::is_void_v<OurResult> || std::is_void_v<TheirResult>)
      return std::is_void_v<OurResult> && std::is_void_v<TheirResult>;
    else
      return sizeof(OurResult) == sizeof(TheirResult);
  }
  static constexpr bool parameters() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs))
      return false;
    else
      return ((sizeof(Ours) == sizeof(Theirs)) && ...);
  }
  static constexpr bool value = results() && parameters();
};
#define SAME_CALL(name, result, parameters_of_call) \
  static_assert(same_call<result(*) parameters_of_call, decltype(&wgpu##name)>::value);
BITNET_WEBGPU_CALLS(SAME_CALL)
// NOLINTEND(bugprone-sizeof-expression, bugprone-macro-parentheses)

TEST(webgpu_standard, numbers_are_those_of_the_header) {
  struct pair {
    const char* name;
    uint64_t ours, theirs;
  };
#define PAIR(ours, theirs) \
  pair {                   \
    #theirs, ours, theirs  \
  }
  const pair all[] = {
      PAIR(status_success, WGPUStatus_Success),
      PAIR(native_instance_extras_type, WGPUSType_InstanceExtras),
      PAIR(native_primary,
           WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12),
      PAIR(status_success, WGPURequestAdapterStatus_Success),
      PAIR(status_success, WGPURequestDeviceStatus_Success),
      PAIR(status_success, WGPUMapAsyncStatus_Success),
      PAIR(status_success, WGPUQueueWorkDoneStatus_Success),
      PAIR(status_success, WGPUPopErrorScopeStatus_Success),
      PAIR(allow_process_events, WGPUCallbackMode_AllowProcessEvents),
      PAIR(backend_null, WGPUBackendType_Null),
      PAIR(backend_d3d12, WGPUBackendType_D3D12),
      PAIR(backend_metal, WGPUBackendType_Metal),
      PAIR(backend_vulkan, WGPUBackendType_Vulkan),
      PAIR(backend_opengles, WGPUBackendType_OpenGLES),
      PAIR(adapter_discrete_gpu, WGPUAdapterType_DiscreteGPU),
      PAIR(adapter_integrated_gpu, WGPUAdapterType_IntegratedGPU),
      PAIR(adapter_cpu, WGPUAdapterType_CPU),
      PAIR(power_low, WGPUPowerPreference_LowPower),
      PAIR(power_high, WGPUPowerPreference_HighPerformance),
      PAIR(feature_level_core, WGPUFeatureLevel_Core),
      PAIR(feature_timestamp_query, WGPUFeatureName_TimestampQuery),
      PAIR(feature_subgroups, WGPUFeatureName_Subgroups),
      PAIR(language_packed_dot, WGPUWGSLLanguageFeatureName_Packed4x8IntegerDotProduct),
      PAIR(error_none, WGPUErrorType_NoError),
      PAIR(error_validation, WGPUErrorType_Validation),
      PAIR(error_out_of_memory, WGPUErrorType_OutOfMemory),
      PAIR(filter_validation, WGPUErrorFilter_Validation),
      PAIR(filter_out_of_memory, WGPUErrorFilter_OutOfMemory),
      PAIR(binding_uniform, WGPUBufferBindingType_Uniform),
      PAIR(binding_storage, WGPUBufferBindingType_Storage),
      PAIR(source_wgsl, WGPUSType_ShaderSourceWGSL),
      PAIR(query_timestamp, WGPUQueryType_Timestamp),
      PAIR(usage_map_read, WGPUBufferUsage_MapRead),
      PAIR(usage_copy_src, WGPUBufferUsage_CopySrc),
      PAIR(usage_copy_dst, WGPUBufferUsage_CopyDst),
      PAIR(usage_uniform, WGPUBufferUsage_Uniform),
      PAIR(usage_storage, WGPUBufferUsage_Storage),
      PAIR(usage_query_resolve, WGPUBufferUsage_QueryResolve),
      PAIR(map_read, WGPUMapMode_Read),
      PAIR(stage_compute, WGPUShaderStage_Compute),
  };
  for (const pair& p : all) EXPECT_EQ(p.ours, p.theirs) << p.name;
}

}  // namespace
}  // namespace bitnet::webgpu
