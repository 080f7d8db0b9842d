#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "driver.hpp"
#include "opencl_source.hpp"

namespace bitnet::ceilings {

const char* const api = "opencl";

namespace {

void check(cl_int status, const char* call) {
  if (status != CL_SUCCESS)
    throw std::runtime_error(std::string(call) + " fails with " + std::to_string(status));
}

std::string text_of(cl_device_id device, cl_device_info what) {
  std::size_t bytes = 0;
  check(clGetDeviceInfo(device, what, 0, nullptr, &bytes), "clGetDeviceInfo");
  std::string text(bytes, '\0');
  check(clGetDeviceInfo(device, what, bytes, text.data(), nullptr), "clGetDeviceInfo");
  return text.c_str();  // up to the NUL
}

template <class T>
T number_of(cl_device_id device, cl_device_info what) {
  T value{};
  check(clGetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

cl_device_id find(uint32_t index) {
  cl_uint n_platforms = 0;
  clGetPlatformIDs(0, nullptr, &n_platforms);  // an error without any
  std::vector<cl_platform_id> platforms(n_platforms);
  if (n_platforms != 0)
    check(clGetPlatformIDs(n_platforms, platforms.data(), nullptr), "clGetPlatformIDs");
  uint32_t seen = 0;
  for (cl_platform_id platform : platforms) {
    cl_uint n = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &n) != CL_SUCCESS) continue;
    std::vector<cl_device_id> devices(n);
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, devices.data(), nullptr),
          "clGetDeviceIDs");
    if (index < seen + n) return devices[index - seen];
    seen += n;
  }
  throw unavailable("OpenCL has " + std::to_string(seen) + " devices; install a driver such as " +
                    "pocl-opencl-icd, or choose with --device");
}

class opencl_driver final : public driver {
 public:
  explicit opencl_driver(uint32_t index) : device_(find(index)) {
    cl_int status = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
    check(status, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, device_, 0, &status);
    check(status, "clCreateCommandQueue");
  }
  ~opencl_driver() override {
    for (const auto& [form, made] : kernels_) clReleaseKernel(made);
    for (const auto& [way, made] : programs_) clReleaseProgram(made);
    for (cl_mem buffer : buffers_) clReleaseMemObject(buffer);
    if (queue_ != nullptr) clReleaseCommandQueue(queue_);
    if (context_ != nullptr) clReleaseContext(context_);
  }
  opencl_driver(const opencl_driver&) = delete;
  opencl_driver& operator=(const opencl_driver&) = delete;

  std::string device() const override { return text_of(device_, CL_DEVICE_NAME); }
  std::string software() const override {
    return text_of(device_, CL_DEVICE_VERSION) + ", " + text_of(device_, CL_DRIVER_VERSION);
  }
  uint64_t most_bytes() const override {
    return number_of<cl_ulong>(device_, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  }
  uint32_t most_threads() const override {
    return static_cast<uint32_t>(number_of<std::size_t>(device_, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  }

  void allocate(uint32_t count, uint64_t bytes) override {
    for (uint32_t i = 0; i < count; ++i) {
      cl_int status = CL_SUCCESS;
      buffers_.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &status));
      check(status, "clCreateBuffer");
    }
  }

  double seconds(std::span<const dispatch> list) override {
    for (const dispatch& d : list)
      if (d.run != kernel::copy_command) made(d);
    check(clFinish(queue_), "clFinish");
    const auto start = std::chrono::steady_clock::now();
    for (const dispatch& d : list) enqueue(d);
    check(clFinish(queue_), "clFinish");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  std::vector<uint32_t> words(uint32_t buffer, uint32_t count) override {
    std::vector<uint32_t> out(count);
    check(clEnqueueReadBuffer(queue_, buffers_[buffer], CL_TRUE, 0, sizeof(uint32_t) * count,
                              out.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    return out;
  }

 private:
  void enqueue(const dispatch& d) {
    if (d.run == kernel::copy_command) {
      check(clEnqueueCopyBuffer(queue_, buffers_[d.from], buffers_[d.to], 0, 0, uint64_t{16} * d.n,
                                0, nullptr, nullptr),
            "clEnqueueCopyBuffer");
      return;
    }
    cl_kernel run = made(d);
    check(clSetKernelArg(run, 0, sizeof(cl_mem), &buffers_[d.from]), "clSetKernelArg");
    check(clSetKernelArg(run, 1, sizeof(cl_mem), &buffers_[d.to]), "clSetKernelArg");
    check(clSetKernelArg(run, 2, sizeof d.n, &d.n), "clSetKernelArg");
    check(clSetKernelArg(run, 3, sizeof d.repeats, &d.repeats), "clSetKernelArg");
    const std::size_t group = d.in.group, all = group * d.in.groups;
    check(clEnqueueNDRangeKernel(queue_, run, 1, nullptr, &all, &group, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
  }

  cl_kernel made(const dispatch& d) {
    constexpr const char* names[] = {"fill", "read", "copy", "dot_bytes", "dot_f32", "nothing"};
    cl_kernel& run = kernels_[{d.run, d.in.way}];
    cl_int status = CL_SUCCESS;
    if (run == nullptr)
      run = clCreateKernel(program(d.in.way), names[static_cast<uint32_t>(d.run)], &status);
    check(status, "clCreateKernel");
    return run;
  }

  cl_program program(uint32_t way) {
    cl_program& out = programs_[way];
    if (out != nullptr) return out;
    const char* text = opencl_source;
    cl_int status = CL_SUCCESS;
    out = clCreateProgramWithSource(context_, 1, &text, nullptr, &status);
    check(status, "clCreateProgramWithSource");
    const std::string options = "-cl-std=CL1.2 -DWAY=" + std::to_string(way);
    check(clBuildProgram(out, 1, &device_, options.c_str(), nullptr, nullptr), "clBuildProgram");
    return out;
  }

  cl_device_id device_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::vector<cl_mem> buffers_;
  std::map<uint32_t, cl_program> programs_;  // by way
  std::map<std::pair<kernel, uint32_t>, cl_kernel> kernels_;
};

}  // namespace

std::unique_ptr<driver> open(uint32_t index) {
  return std::make_unique<opencl_driver>(index);
}

}  // namespace bitnet::ceilings
