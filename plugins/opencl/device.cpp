#include "device.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "queue.hpp"
#include "recording.hpp"

namespace bitnet::opencl {
namespace {

// Each function has a program of its own, so that a driver's cached binary is reusable.
class kernel final : public gpu::kernel {
 public:
  kernel(const library& cl, const gpu::kernel_spec& s) noexcept : spec(s), cl_(cl) {}
  ~kernel() override {
    if (program) cl_.clReleaseProgram(program);
  }

  const gpu::kernel_spec spec;
  cl_program program = nullptr;

 private:
  const library& cl_;
};

// Memory that OpenCL uses in place is aligned to its largest type, and its size to pages: some
// drivers would copy it otherwise.
constexpr uint64_t page_bytes = 4096;

}  // namespace

gpu::facts common_facts(const device_facts& device) {
  const bitnet_device_info& info = device.info;
  const device_traits& traits = device.traits;
  gpu::facts out;
  out.name = info.name;
  out.uuid = info.uuid;
  out.pci_address = info.pci_address;
  out.arch = info.arch;
  out.driver_version = info.driver_version;
  out.device_class = info.device_class;
  out.memory_total_bytes = info.memory_total_bytes;
  out.compute_units = info.compute_units;
  gpu::capabilities& can = out.capabilities;
  can.max_allocation_bytes = can.max_binding_bytes = info.max_allocation_bytes;
  can.max_allocation_name = can.max_binding_name = "CL_DEVICE_MAX_MEM_ALLOC_SIZE";
  can.binding_alignment = 4;  // kernels get the first word of a binding as a parameter
  can.max_group_size = traits.max_group_items;
  can.shared_memory_bytes = traits.local_bytes;
  can.max_bindings = gpu::max_kernel_bindings;
  if (traits.runs_on_cores) {
    // A core runs the items of a group one after the other and every barrier costs time. So a group
    // has one item, which the compiler vectorises, and each core a few groups, each with its part
    // of the work.
    can.group_size = 1;
    can.max_kept = 1024;  // elements of a head, in the first-level cache
    can.max_groups = std::max(1u, info.compute_units) * 8;
    out.quirks.max_repeated = 1024;  // PoCL: a command costs 2 us, an element 3 ns
  } else {
    can.group_size = std::min(64u, std::bit_floor(traits.max_group_items));
    can.max_groups = 65535;
  }
  return out;
}

context::~context() {
  if (commands) {
    cl.clFinish(commands);
    cl.clReleaseCommandQueue(commands);
  }
  if (handle) cl.clReleaseContext(handle);
}

bitnet_status context::fail(const char* call, cl_int status, const sdk::reporter& report) const {
  bitnet_status code = BITNET_INTERNAL;
  const char* advice = "report it with the driver's version";
  switch (status) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_INVALID_BUFFER_SIZE:
      code = BITNET_OUT_OF_DEVICE_MEMORY;
      advice = "use a smaller model, a shorter context or another device";
      break;
    case CL_OUT_OF_HOST_MEMORY:
      code = BITNET_OUT_OF_MEMORY;
      advice = "use a smaller model or a shorter context";
      break;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
      code = BITNET_DEVICE_LOST;
      advice = "open the device again";
      break;
    default:
      break;
  }
  return report.from("opencl", status)
      .fail(code, "%s: %s failed with %s; %s", facts.info.name, call, status_name(status).c_str(),
            advice);
}

bitnet_status context::open(const sdk::reporter& report) {
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(facts.platform), 0};
  cl_int status = CL_SUCCESS;
  handle = cl.clCreateContext(properties, 1, &facts.id, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) {
    handle = nullptr;
    return fail("clCreateContext", status, report);
  }
  commands = cl.clCreateCommandQueue(handle, facts.id, 0, &status);
  if (status == CL_SUCCESS) return BITNET_OK;
  commands = nullptr;
  return fail("clCreateCommandQueue", status, report);
}

bitnet_status context::start_timing(const sdk::reporter& report) {
  if (timed) return BITNET_OK;
  cl_int status = CL_SUCCESS;
  cl_command_queue measuring =
      cl.clCreateCommandQueue(handle, facts.id, CL_QUEUE_PROFILING_ENABLE, &status);
  if (status != CL_SUCCESS) return fail("clCreateCommandQueue", status, report);
  cl.clFinish(commands);
  cl.clReleaseCommandQueue(commands);
  commands = measuring;
  timed = true;
  return BITNET_OK;
}

device_buffer::~device_buffer() {
  if (is_mapped_) unmap();
  if (!handle_) return;
  if (host_.data()) context_.cl.clFinish(context_.commands);  // commands may still use the memory
  context_.cl.clReleaseMemObject(handle_);
}

bitnet_status device_buffer::create(gpu::memory_place where, const sdk::reporter& report) {
  const library& cl = context_.cl;
  if (bytes_ > context_.facts.info.max_allocation_bytes)
    return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                       "%s: a buffer of %llu bytes, its driver allows %llu; use a smaller model, a "
                       "shorter context or another device",
                       context_.facts.info.name, static_cast<unsigned long long>(bytes_),
                       static_cast<unsigned long long>(context_.facts.info.max_allocation_bytes));
  const uint64_t bytes = std::max<uint64_t>((bytes_ + 3) / 4 * 4, 4);
  cl_int status = CL_SUCCESS;
  if (where == gpu::memory_place::host) {
    host_ = sdk::memory((bytes + page_bytes - 1) / page_bytes * page_bytes + page_bytes);
    handle_ = cl.clCreateBuffer(context_.handle, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes,
                                host_.data(), &status);
    if (status == CL_SUCCESS) status = map(nullptr);
  } else {
    handle_ = cl.clCreateBuffer(context_.handle, CL_MEM_READ_WRITE, bytes, nullptr, &status);
    const cl_uint zero = 0;
    if (status == CL_SUCCESS)
      status = cl.clEnqueueFillBuffer(context_.commands, handle_, &zero, sizeof zero, 0, bytes, 0,
                                      nullptr, nullptr);
  }
  if (status == CL_SUCCESS) status = cl.clFinish(context_.commands);
  return status == CL_SUCCESS ? BITNET_OK : context_.fail("clCreateBuffer", status, report);
}

cl_int device_buffer::unmap() {
  if (!is_mapped_) return CL_SUCCESS;
  is_mapped_ = false;
  return context_.cl.clEnqueueUnmapMemObject(context_.commands, handle_, host_.data(), 0, nullptr,
                                             nullptr);
}

cl_int device_buffer::map(cl_event* done) {
  cl_int status = CL_SUCCESS;
  const void* at = context_.cl.clEnqueueMapBuffer(context_.commands, handle_, CL_FALSE,
                                                  CL_MAP_READ | CL_MAP_WRITE, 0, bytes_, 0, nullptr,
                                                  done, &status);
  if (status != CL_SUCCESS) return status;
  is_mapped_ = true;
  return at == host_.data() ? CL_SUCCESS : CL_MAP_FAILURE;  // guaranteed by CL_MEM_USE_HOST_PTR
}

bitnet_status device::status(bitnet_device_status& out, const sdk::reporter&) const {
  const uint64_t total = context_.facts.info.memory_total_bytes;
  uint64_t free = 0;
  if (total == 0 || !free_memory_of(context_.cl, context_.facts, free)) return BITNET_OK;
  out.known |= BITNET_STATUS_MEMORY;
  out.memory_total_bytes = total;
  out.memory_free_bytes = std::min(free, total);
  return BITNET_OK;
}

bitnet_status device::allocate(uint64_t bytes, gpu::memory_place where,
                               std::unique_ptr<gpu::buffer>& out, const sdk::reporter& report) {
  auto made = std::make_unique<device_buffer>(context_, std::max<uint64_t>(bytes, 4));
  if (bitnet_status s = made->create(where, report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::upload(gpu::buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                             const sdk::reporter& report) {
  if (bytes == 0) return BITNET_OK;
  if (to.mapped()) {
    std::memcpy(static_cast<uint8_t*>(to.mapped()) + offset, data, bytes);
    return BITNET_OK;
  }
  const cl_int status =
      context_.cl.clEnqueueWriteBuffer(context_.commands, static_cast<device_buffer&>(to).handle(),
                                       CL_TRUE, offset, bytes, data, 0, nullptr, nullptr);
  return status == CL_SUCCESS ? BITNET_OK : context_.fail("clEnqueueWriteBuffer", status, report);
}

bitnet_status device::download(const gpu::buffer& from, uint64_t offset, void* data, uint64_t bytes,
                               const sdk::reporter& report) {
  if (bytes == 0) return BITNET_OK;
  if (from.mapped()) {
    std::memcpy(data, static_cast<const uint8_t*>(from.mapped()) + offset, bytes);
    return BITNET_OK;
  }
  const cl_int status = context_.cl.clEnqueueReadBuffer(
      context_.commands, static_cast<const device_buffer&>(from).handle(), CL_TRUE, offset, bytes,
      data, 0, nullptr, nullptr);
  return status == CL_SUCCESS ? BITNET_OK : context_.fail("clEnqueueReadBuffer", status, report);
}

bitnet_status device::make_kernel(const gpu::kernel_spec& spec, std::unique_ptr<gpu::kernel>& out,
                                  const sdk::reporter& report) {
  const uint32_t threads = spec.constants[0];
  if (!std::has_single_bit(threads) || threads > context_.facts.traits.max_group_items)
    return report.fail(BITNET_UNSUPPORTED,
                       "%s: work groups of %u items; a power of two up to %u is expected",
                       context_.facts.info.name, threads, context_.facts.traits.max_group_items);
  const compiler c{context_.cl, context_.facts, context_.handle, cache_, context_.log};
  auto made = std::make_unique<kernel>(context_.cl, spec);
  if (bitnet_status s = c.compile(spec, made->program, report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::record(std::span<const gpu::command> commands, bool timed,
                             std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) {
  if (timed)
    if (bitnet_status s = context_.start_timing(report); sdk::failed(s)) return s;
  auto made = std::make_unique<recording>(context_, timed);
  for (const gpu::command& one : commands) {
    if (!one.run) {
      made->add_copies(one);
      continue;
    }
    const auto& f = static_cast<const kernel&>(*one.run);
    if (bitnet_status s =
            made->add(one, f.program, kernel_name(f.spec), f.spec.constants[0], report);
        sdk::failed(s))
      return s;
  }
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter&) {
  out = std::make_unique<queue>(context_);
  return BITNET_OK;
}

}  // namespace bitnet::opencl
