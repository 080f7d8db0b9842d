#pragma once
// The part of the standard C header webgpu.h that this plugin uses, declared again so that the
// build needs no library. Members have the names of the standard; types too, without WGPU and in
// snake_case.
//
// Source   https://github.com/webgpu-native/webgpu-headers, as of wgpu-native 29 (2026), with
//          WGPUStringView, WGPUFuture and maxImmediateSize. tests/webgpu/standard_test.cpp compares
//          every size and offset with the header that comes with a library.

#include <cstddef>
#include <cstdint>

namespace bitnet::webgpu {

using flag = uint32_t;   // WGPUBool
using flags = uint64_t;  // WGPUFlags

// Handles.
using instance_handle = struct instance_of_library*;
using adapter_handle = struct adapter_of_library*;
using device_handle = struct device_of_library*;
using queue_handle = struct queue_of_library*;
using buffer_handle = struct buffer_of_library*;
using shader_module_handle = struct shader_module_of_library*;
using bind_group_layout_handle = struct bind_group_layout_of_library*;
using pipeline_layout_handle = struct pipeline_layout_of_library*;
using compute_pipeline_handle = struct compute_pipeline_of_library*;
using bind_group_handle = struct bind_group_of_library*;
using command_encoder_handle = struct command_encoder_of_library*;
using compute_pass_encoder_handle = struct compute_pass_encoder_of_library*;
using command_buffer_handle = struct command_buffer_of_library*;
using query_set_handle = struct query_set_of_library*;

// Values of enums.
inline constexpr uint32_t status_success = 1;        // of each kind of status
inline constexpr uint32_t allow_process_events = 2;  // WGPUCallbackMode
inline constexpr uint32_t backend_undefined = 0, backend_null = 1, backend_webgpu = 2,
                          backend_d3d11 = 3, backend_d3d12 = 4, backend_metal = 5,
                          backend_vulkan = 6, backend_opengl = 7, backend_opengles = 8;
inline constexpr uint32_t adapter_discrete_gpu = 1, adapter_integrated_gpu = 2, adapter_cpu = 3;
inline constexpr uint32_t power_undefined = 0, power_low = 1, power_high = 2;
inline constexpr uint32_t feature_level_core = 2;
inline constexpr uint32_t feature_timestamp_query = 9, feature_subgroups = 18;
inline constexpr uint32_t language_packed_dot = 2;  // packed_4x8_integer_dot_product
inline constexpr uint32_t error_none = 1, error_validation = 2, error_out_of_memory = 3;
inline constexpr uint32_t filter_validation = 1, filter_out_of_memory = 2;
inline constexpr uint32_t binding_uniform = 2, binding_storage = 3;
inline constexpr uint32_t source_wgsl = 2;      // WGPUSType_ShaderSourceWGSL
inline constexpr uint32_t query_timestamp = 2;  // WGPUQueryType_Timestamp
inline constexpr flags usage_map_read = 1, usage_copy_src = 4, usage_copy_dst = 8,
                       usage_uniform = 0x40, usage_storage = 0x80, usage_query_resolve = 0x200;
inline constexpr flags map_read = 1;
inline constexpr flags stage_compute = 4;

struct string_view {
  const char* data = nullptr;
  size_t length = SIZE_MAX;  // SIZE_MAX: up to the first zero, or none if data is null
};
struct chained_struct {
  chained_struct* next = nullptr;
  uint32_t sType = 0;
};
struct future {
  uint64_t id;
};

struct instance_limits;
struct instance_descriptor {
  chained_struct* nextInChain = nullptr;
  size_t requiredFeatureCount = 0;
  const uint32_t* requiredFeatures = nullptr;
  const instance_limits* requiredLimits = nullptr;
};

// Not in the standard: wgpu-native reads it as a chained struct of instance_descriptor. By default
// it also opens OpenGL, which lists Vulkan's devices again.
inline constexpr uint32_t native_instance_extras_type = 0x00030004;
inline constexpr flags native_primary = 1 | 4 | 8;  // Vulkan, Metal, Direct3D 12
struct native_instance_extras {
  chained_struct chain{nullptr, native_instance_extras_type};
  flags backends = native_primary;
  uint64_t others[32] = {};  // default 0; larger than the library's struct
};

struct request_adapter_options {
  chained_struct* nextInChain = nullptr;
  uint32_t featureLevel = feature_level_core;
  uint32_t powerPreference = power_undefined;
  flag forceFallbackAdapter = 0;
  uint32_t backendType = backend_undefined;
  void* compatibleSurface = nullptr;
};
struct request_adapter_callback_info {
  chained_struct* nextInChain = nullptr;
  uint32_t mode = allow_process_events;
  void (*callback)(uint32_t status, adapter_handle adapter, string_view message, void* userdata1,
                   void* userdata2) = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};
struct adapter_info {
  chained_struct* nextInChain = nullptr;
  string_view vendor, architecture, device, description;
  uint32_t backendType = 0, adapterType = 0, vendorID = 0, deviceID = 0;
  uint32_t subgroupMinSize = 0, subgroupMaxSize = 0;
};
struct limits {
  chained_struct* nextInChain = nullptr;
  uint32_t maxTextureDimension1D = 0, maxTextureDimension2D = 0, maxTextureDimension3D = 0;
  uint32_t maxTextureArrayLayers = 0, maxBindGroups = 0, maxBindGroupsPlusVertexBuffers = 0;
  uint32_t maxBindingsPerBindGroup = 0, maxDynamicUniformBuffersPerPipelineLayout = 0;
  uint32_t maxDynamicStorageBuffersPerPipelineLayout = 0, maxSampledTexturesPerShaderStage = 0;
  uint32_t maxSamplersPerShaderStage = 0, maxStorageBuffersPerShaderStage = 0;
  uint32_t maxStorageTexturesPerShaderStage = 0, maxUniformBuffersPerShaderStage = 0;
  uint64_t maxUniformBufferBindingSize = 0, maxStorageBufferBindingSize = 0;
  uint32_t minUniformBufferOffsetAlignment = 0, minStorageBufferOffsetAlignment = 0;
  uint32_t maxVertexBuffers = 0;
  uint64_t maxBufferSize = 0;
  uint32_t maxVertexAttributes = 0, maxVertexBufferArrayStride = 0;
  uint32_t maxInterStageShaderVariables = 0, maxColorAttachments = 0;
  uint32_t maxColorAttachmentBytesPerSample = 0, maxComputeWorkgroupStorageSize = 0;
  uint32_t maxComputeInvocationsPerWorkgroup = 0, maxComputeWorkgroupSizeX = 0;
  uint32_t maxComputeWorkgroupSizeY = 0, maxComputeWorkgroupSizeZ = 0;
  uint32_t maxComputeWorkgroupsPerDimension = 0, maxImmediateSize = 0;
};

struct queue_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
};
struct device_lost_callback_info {
  chained_struct* nextInChain = nullptr;
  uint32_t mode = allow_process_events;
  void (*callback)(const device_handle* device, uint32_t reason, string_view message,
                   void* userdata1, void* userdata2) = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};
struct uncaptured_error_callback_info {
  chained_struct* nextInChain = nullptr;
  void (*callback)(const device_handle* device, uint32_t type, string_view message, void* userdata1,
                   void* userdata2) = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};
struct device_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
  size_t requiredFeatureCount = 0;
  const uint32_t* requiredFeatures = nullptr;
  const limits* requiredLimits = nullptr;
  queue_descriptor defaultQueue;
  device_lost_callback_info deviceLostCallbackInfo;
  uncaptured_error_callback_info uncapturedErrorCallbackInfo;
};
struct request_device_callback_info {
  chained_struct* nextInChain = nullptr;
  uint32_t mode = allow_process_events;
  void (*callback)(uint32_t status, device_handle device, string_view message, void* userdata1,
                   void* userdata2) = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};

struct buffer_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
  flags usage = 0;
  uint64_t size = 0;
  flag mappedAtCreation = 0;
};
struct buffer_map_callback_info {
  chained_struct* nextInChain = nullptr;
  uint32_t mode = allow_process_events;
  void (*callback)(uint32_t status, string_view message, void* userdata1,
                   void* userdata2) = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};
// Also for WGPUQueueWorkDoneCallback, which has the same shape and another status.
using queue_work_done_callback_info = buffer_map_callback_info;
struct pop_error_scope_callback_info {
  chained_struct* nextInChain = nullptr;
  uint32_t mode = allow_process_events;
  void (*callback)(uint32_t status, uint32_t type, string_view message, void* userdata1,
                   void* userdata2) = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};

struct shader_module_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
};
struct shader_source_wgsl {
  chained_struct chain;
  string_view code;
};
struct constant_entry;
struct compute_state {
  chained_struct* nextInChain = nullptr;
  shader_module_handle module = nullptr;
  string_view entryPoint;
  size_t constantCount = 0;
  const constant_entry* constants = nullptr;
};
struct compute_pipeline_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
  pipeline_layout_handle layout = nullptr;
  compute_state compute;
};

struct buffer_binding_layout {
  chained_struct* nextInChain = nullptr;
  uint32_t type = 0;  // 0: not used
  flag hasDynamicOffset = 0;
  uint64_t minBindingSize = 0;
};
struct sampler_binding_layout {
  chained_struct* nextInChain = nullptr;
  uint32_t type = 0;
};
struct texture_binding_layout {
  chained_struct* nextInChain = nullptr;
  uint32_t sampleType = 0, viewDimension = 0;
  flag multisampled = 0;
};
struct storage_texture_binding_layout {
  chained_struct* nextInChain = nullptr;
  uint32_t access = 0, format = 0, viewDimension = 0;
};
struct bind_group_layout_entry {
  chained_struct* nextInChain = nullptr;
  uint32_t binding = 0;
  flags visibility = 0;
  uint32_t bindingArraySize = 0;
  buffer_binding_layout buffer;
  sampler_binding_layout sampler;
  texture_binding_layout texture;
  storage_texture_binding_layout storageTexture;
};
struct bind_group_layout_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
  size_t entryCount = 0;
  const bind_group_layout_entry* entries = nullptr;
};
struct pipeline_layout_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
  size_t bindGroupLayoutCount = 0;
  const bind_group_layout_handle* bindGroupLayouts = nullptr;
  uint32_t immediateSize = 0;
};
struct bind_group_entry {
  chained_struct* nextInChain = nullptr;
  uint32_t binding = 0;
  buffer_handle buffer = nullptr;
  uint64_t offset = 0, size = 0;
  void* sampler = nullptr;
  void* textureView = nullptr;
};
struct bind_group_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
  bind_group_layout_handle layout = nullptr;
  size_t entryCount = 0;
  const bind_group_entry* entries = nullptr;
};

struct command_encoder_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
};
struct command_buffer_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
};
struct pass_timestamp_writes {
  chained_struct* nextInChain = nullptr;
  query_set_handle querySet = nullptr;
  uint32_t beginningOfPassWriteIndex = 0, endOfPassWriteIndex = 0;
};
struct compute_pass_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
  const pass_timestamp_writes* timestampWrites = nullptr;
};
struct query_set_descriptor {
  chained_struct* nextInChain = nullptr;
  string_view label;
  uint32_t type = query_timestamp;
  uint32_t count = 0;
};

// Every call that this plugin makes: its name without wgpu, its result, its parameters.
#define BITNET_WEBGPU_CALLS(X)                                                                   \
  X(CreateInstance, instance_handle, (const instance_descriptor*))                               \
  X(InstanceRelease, void, (instance_handle))                                                    \
  X(InstanceProcessEvents, void, (instance_handle))                                              \
  X(InstanceHasWGSLLanguageFeature, flag, (instance_handle, uint32_t))                           \
  X(InstanceRequestAdapter, future,                                                              \
    (instance_handle, const request_adapter_options*, request_adapter_callback_info))            \
  X(AdapterRelease, void, (adapter_handle))                                                      \
  X(AdapterGetInfo, uint32_t, (adapter_handle, adapter_info*))                                   \
  X(AdapterInfoFreeMembers, void, (adapter_info))                                                \
  X(AdapterGetLimits, uint32_t, (adapter_handle, limits*))                                       \
  X(AdapterHasFeature, flag, (adapter_handle, uint32_t))                                         \
  X(AdapterRequestDevice, future,                                                                \
    (adapter_handle, const device_descriptor*, request_device_callback_info))                    \
  X(DeviceRelease, void, (device_handle))                                                        \
  X(DeviceDestroy, void, (device_handle))                                                        \
  X(DeviceGetQueue, queue_handle, (device_handle))                                               \
  X(DevicePushErrorScope, void, (device_handle, uint32_t))                                       \
  X(DevicePopErrorScope, future, (device_handle, pop_error_scope_callback_info))                 \
  X(DeviceCreateBuffer, buffer_handle, (device_handle, const buffer_descriptor*))                \
  X(DeviceCreateShaderModule, shader_module_handle,                                              \
    (device_handle, const shader_module_descriptor*))                                            \
  X(DeviceCreateBindGroupLayout, bind_group_layout_handle,                                       \
    (device_handle, const bind_group_layout_descriptor*))                                        \
  X(DeviceCreatePipelineLayout, pipeline_layout_handle,                                          \
    (device_handle, const pipeline_layout_descriptor*))                                          \
  X(DeviceCreateComputePipeline, compute_pipeline_handle,                                        \
    (device_handle, const compute_pipeline_descriptor*))                                         \
  X(DeviceCreateBindGroup, bind_group_handle, (device_handle, const bind_group_descriptor*))     \
  X(DeviceCreateCommandEncoder, command_encoder_handle,                                          \
    (device_handle, const command_encoder_descriptor*))                                          \
  X(DeviceCreateQuerySet, query_set_handle, (device_handle, const query_set_descriptor*))        \
  X(QueueRelease, void, (queue_handle))                                                          \
  X(QueueSubmit, void, (queue_handle, size_t, const command_buffer_handle*))                     \
  X(QueueWriteBuffer, void, (queue_handle, buffer_handle, uint64_t, const void*, size_t))        \
  X(QueueOnSubmittedWorkDone, future, (queue_handle, queue_work_done_callback_info))             \
  X(BufferRelease, void, (buffer_handle))                                                        \
  X(BufferDestroy, void, (buffer_handle))                                                        \
  X(BufferMapAsync, future, (buffer_handle, flags, size_t, size_t, buffer_map_callback_info))    \
  X(BufferGetConstMappedRange, const void*, (buffer_handle, size_t, size_t))                     \
  X(BufferUnmap, void, (buffer_handle))                                                          \
  X(ShaderModuleRelease, void, (shader_module_handle))                                           \
  X(BindGroupLayoutRelease, void, (bind_group_layout_handle))                                    \
  X(PipelineLayoutRelease, void, (pipeline_layout_handle))                                       \
  X(ComputePipelineRelease, void, (compute_pipeline_handle))                                     \
  X(BindGroupRelease, void, (bind_group_handle))                                                 \
  X(QuerySetRelease, void, (query_set_handle))                                                   \
  X(CommandEncoderBeginComputePass, compute_pass_encoder_handle,                                 \
    (command_encoder_handle, const compute_pass_descriptor*))                                    \
  X(CommandEncoderCopyBufferToBuffer, void,                                                      \
    (command_encoder_handle, buffer_handle, uint64_t, buffer_handle, uint64_t, uint64_t))        \
  X(CommandEncoderResolveQuerySet, void,                                                         \
    (command_encoder_handle, query_set_handle, uint32_t, uint32_t, buffer_handle, uint64_t))     \
  X(CommandEncoderFinish, command_buffer_handle,                                                 \
    (command_encoder_handle, const command_buffer_descriptor*))                                  \
  X(CommandEncoderRelease, void, (command_encoder_handle))                                       \
  X(CommandBufferRelease, void, (command_buffer_handle))                                         \
  X(ComputePassEncoderSetPipeline, void, (compute_pass_encoder_handle, compute_pipeline_handle)) \
  X(ComputePassEncoderSetBindGroup, void,                                                        \
    (compute_pass_encoder_handle, uint32_t, bind_group_handle, size_t, const uint32_t*))         \
  X(ComputePassEncoderDispatchWorkgroups, void,                                                  \
    (compute_pass_encoder_handle, uint32_t, uint32_t, uint32_t))                                 \
  X(ComputePassEncoderEnd, void, (compute_pass_encoder_handle))                                  \
  X(ComputePassEncoderRelease, void, (compute_pass_encoder_handle))

// Calls that are only looked up: libraries with an older header lack some of them, and their
// structs have other shapes.
inline constexpr const char* marks_of_header[] = {"wgpuGetInstanceLimits",
                                                  "wgpuHasInstanceFeature"};

}  // namespace bitnet::webgpu
