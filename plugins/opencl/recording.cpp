#include "recording.hpp"

#include <algorithm>

namespace bitnet::opencl {

recording::~recording() {
  forget_events();
  for (const step& s : steps_)
    if (s.kernel) context_.cl.clReleaseKernel(s.kernel);
}

void recording::forget_events() noexcept {
  for (cl_event e : events_) context_.cl.clReleaseEvent(e);
  events_.clear();
}

void recording::use(device_buffer* memory) {
  if (memory->mapped() &&
      std::find(host_buffers_.begin(), host_buffers_.end(), memory) == host_buffers_.end())
    host_buffers_.push_back(memory);
}

// The interface passes buffers as const; commands may write their contents nevertheless.
static device_buffer* memory_of(const gpu::binding& b) {
  return const_cast<device_buffer*>(static_cast<const device_buffer*>(b.memory));
}

void recording::add_copies(const gpu::command& one) {
  step s;
  s.from = memory_of(one.bindings[0])->handle();
  s.to = memory_of(one.bindings[1])->handle();
  s.copies = one.copies;
  steps_.push_back(std::move(s));
  for (const gpu::binding& b : one.bindings) use(memory_of(b));
}

bitnet_status recording::add(const gpu::command& one, cl_program program, const std::string& name,
                             uint32_t group_size, const sdk::reporter& report) {
  const library& cl = context_.cl;
  cl_int status = CL_SUCCESS;
  step s;
  s.kernel = cl.clCreateKernel(program, name.c_str(), &status);
  if (status != CL_SUCCESS) return context_.fail("clCreateKernel", status, report);
  const cl_kernel kernel = s.kernel;
  steps_.push_back(std::move(s));  // freed with the recording from here on
  size_t most = 0;
  status = cl.clGetKernelWorkGroupInfo(kernel, context_.facts.id, CL_KERNEL_WORK_GROUP_SIZE,
                                       sizeof most, &most, nullptr);
  if (status != CL_SUCCESS) return context_.fail("clGetKernelWorkGroupInfo", status, report);
  if (most < group_size)
    return report.fail(BITNET_UNSUPPORTED,
                       "%s: kernel %s needs work groups of %u items, the driver runs at most %zu; "
                       "use another device or update the driver",
                       context_.facts.info.name, name.c_str(), group_size, most);
  cl_uint index = 0;
  const auto set = [&](size_t bytes, const void* value) {
    if (status == CL_SUCCESS) status = cl.clSetKernelArg(kernel, index++, bytes, value);
  };
  for (const gpu::binding& b : one.bindings) {
    device_buffer* const memory = memory_of(b);
    cl_mem handle = memory->handle();
    const cl_ulong first_word = b.offset / 4;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the size of a handle is what is meant
    set(sizeof handle, static_cast<const void*>(&handle));
    set(sizeof first_word, &first_word);
    use(memory);
  }
  set(one.params.size() * sizeof(uint32_t), one.params.data());
  if (status != CL_SUCCESS) return context_.fail("clSetKernelArg", status, report);
  step& added = steps_.back();
  added.global[0] = size_t{one.groups_x} * group_size;
  added.global[1] = one.groups_y;
  added.local[0] = group_size;
  added.local[1] = 1;
  return BITNET_OK;
}

cl_int recording::enqueue_step(const step& s, cl_event* event) const {
  const library& cl = context_.cl;
  if (s.kernel)
    return cl.clEnqueueNDRangeKernel(context_.commands, s.kernel, 2, nullptr, s.global, s.local, 0,
                                     nullptr, event);
  cl_int status = CL_SUCCESS;
  for (const gpu::copy_range& r : s.copies)
    if (status == CL_SUCCESS)
      status = cl.clEnqueueCopyBuffer(context_.commands, s.from, s.to, r.from, r.to, r.bytes, 0,
                                      nullptr, nullptr);
  return status;
}

bitnet_status recording::enqueue(cl_event* done, const sdk::reporter& report) {
  const library& cl = context_.cl;
  forget_events();
  for (device_buffer* b : host_buffers_)
    if (const cl_int status = b->unmap(); status != CL_SUCCESS)
      return context_.fail("clEnqueueUnmapMemObject", status, report);
  cl_int failed = CL_SUCCESS;
  for (const step& s : steps_) {
    cl_event event = nullptr;
    failed = enqueue_step(s, timed_ ? &event : nullptr);
    if (failed != CL_SUCCESS) break;
    if (event) events_.push_back(event);
  }
  // Also after a failure: host memory must be mapped again.
  for (device_buffer* b : host_buffers_) {
    const cl_int status = b->map(nullptr);
    if (failed == CL_SUCCESS && status != CL_SUCCESS) failed = status;
  }
  if (failed == CL_SUCCESS)
    failed = cl.clEnqueueMarkerWithWaitList(context_.commands, 0, nullptr, done);
  if (failed != CL_SUCCESS) {
    cl.clFinish(context_.commands);
    return context_.fail("enqueueing a step", failed, report);
  }
  return BITNET_OK;
}

bool recording::times(std::span<uint64_t> out) const noexcept {
  if (!timed_ || events_.size() != steps_.size() || out.size() < events_.size()) return false;
  for (size_t i = 0; i < events_.size(); ++i) {
    cl_ulong begin = 0, end = 0;
    const auto ask = [&](cl_profiling_info what, cl_ulong& to) {
      return context_.cl.clGetEventProfilingInfo(events_[i], what, sizeof to, &to, nullptr) ==
             CL_SUCCESS;
    };
    if (!ask(CL_PROFILING_COMMAND_START, begin) || !ask(CL_PROFILING_COMMAND_END, end))
      return false;
    out[i] = end > begin ? end - begin : 0;
  }
  return true;
}

}  // namespace bitnet::opencl
