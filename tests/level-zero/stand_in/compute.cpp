#include "compute.hpp"

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "objects.hpp"

extern char** environ;

namespace stand_in {
namespace {

#define BITNET_STAND_IN_OPENCL(X) \
  X(clGetPlatformIDs)             \
  X(clGetDeviceIDs)               \
  X(clCreateContext)              \
  X(clCreateCommandQueue)         \
  X(clCreateProgramWithBinary)    \
  X(clBuildProgram)               \
  X(clGetProgramBuildInfo)        \
  X(clReleaseProgram)             \
  X(clCreateKernel)               \
  X(clReleaseKernel)              \
  X(clSetKernelArg)               \
  X(clSetKernelArgSVMPointer)     \
  X(clEnqueueNDRangeKernel)       \
  X(clFinish)

// PoCL's device, opened when the first module is made.
struct opencl {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_STAND_IN_MEMBER(name) decltype(&::name) name = nullptr;
  BITNET_STAND_IN_OPENCL(BITNET_STAND_IN_MEMBER)
#undef BITNET_STAND_IN_MEMBER
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;

  opencl() {
    void* const opened = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!opened) complain("libOpenCL.so.1 is not installed (Debian: ocl-icd-libopencl1)");
#define BITNET_STAND_IN_FIND(name)                                        \
  this->name = reinterpret_cast<decltype(&::name)>(dlsym(opened, #name)); \
  if (!this->name) complain("libOpenCL.so.1 has no " #name);
    BITNET_STAND_IN_OPENCL(BITNET_STAND_IN_FIND)
#undef BITNET_STAND_IN_FIND
    cl_platform_id platform = nullptr;
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr) != CL_SUCCESS)
      complain("OpenCL has no processor (Debian: pocl-opencl-icd)");
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    queue = context ? clCreateCommandQueue(context, device, 0, nullptr) : nullptr;
    if (!queue) complain("OpenCL makes no queue");
  }
};
const opencl& cl() {
  static const auto* const opened = new opencl;
  return *opened;
}

// A file without a name: a probe may make no others.
class unnamed_file {
 public:
  unnamed_file() : handle_(memfd_create("bitnet-level-zero", MFD_CLOEXEC)) {
    if (handle_ < 0) complain("no file can be made in memory");
  }
  ~unnamed_file() { close(handle_); }
  unnamed_file(const unnamed_file&) = delete;
  unnamed_file& operator=(const unnamed_file&) = delete;

  int handle() const { return handle_; }
  void write(const uint8_t* data, size_t bytes) const {
    if (pwrite(handle_, data, bytes, 0) != static_cast<ssize_t>(bytes))
      complain("a file in memory takes no more");
  }
  std::string contents() const {
    std::string out(static_cast<size_t>(lseek(handle_, 0, SEEK_END)), '\0');
    if (pread(handle_, out.data(), out.size(), 0) != static_cast<ssize_t>(out.size()))
      complain("a file in memory cannot be read");
    return out;
  }

 private:
  int handle_;
};

// Bitcode of SPIR-V; empty, and `log`, if it is none.
std::string bitcode_of(const uint8_t* spirv, size_t bytes, const std::vector<constant>& constants,
                       std::string& log) {
  const unnamed_file from, to, said;
  from.write(spirv, bytes);
  std::string given = "--spec-const=";
  for (const constant& c : constants)
    given +=
        (given.back() == '=' ? "" : " ") + std::to_string(c.id) + ":i32:" + std::to_string(c.value);
  std::vector<std::string> words = {BITNET_LLVM_SPIRV, "-r", "-o", "-", "/proc/self/fd/0"};
  if (!constants.empty()) words.push_back(given);
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, from.handle(), 0);
  posix_spawn_file_actions_adddup2(&files, to.handle(), 1);
  posix_spawn_file_actions_adddup2(&files, said.handle(), 2);
  pid_t child = 0;
  int status = -1;
  const int spawned = posix_spawn(&child, argv[0], &files, nullptr, argv.data(), environ);
  if (spawned == 0) waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&files);
  if (status == 0) return to.contents();
  log = spawned == 0 ? said.contents()
                     : std::string(BITNET_LLVM_SPIRV) + ": " + std::strerror(spawned);
  return "";
}

}  // namespace

class compiled {
 public:
  ~compiled() {
    if (handle) cl().clReleaseProgram(handle);
  }
  cl_program handle = nullptr;
  std::string spirv;
};

program compile(const uint8_t* spirv, size_t bytes, const std::vector<constant>& constants,
                std::string& log) {
  auto out = std::make_shared<compiled>();
  out->spirv.assign(reinterpret_cast<const char*>(spirv), bytes);
  if (wanted().compute == 0) return out;
  const std::string bitcode = bitcode_of(spirv, bytes, constants, log);
  if (bitcode.empty()) return nullptr;
  const size_t size = bitcode.size();
  const auto* const data = reinterpret_cast<const unsigned char*>(bitcode.data());
  cl_int loaded = CL_SUCCESS, status = CL_SUCCESS;
  out->handle =
      cl().clCreateProgramWithBinary(cl().context, 1, &cl().device, &size,
                                     const_cast<const unsigned char**>(&data), &loaded, &status);
  if (status == CL_SUCCESS)
    status = cl().clBuildProgram(out->handle, 1, &cl().device, "-x spir -spir-std=1.2", nullptr,
                                 nullptr);
  if (status == CL_SUCCESS) return out;
  log = "PoCL answers " + std::to_string(status);
  return nullptr;
}

bool has_entry(const compiled& code, const std::string& name) {
  return code.spirv.find(name + '\0') != std::string::npos;
}

void run(const kernel_call& call, const std::string& name) {
  if (wanted().compute == 0) return;
  cl_int status = CL_SUCCESS;
  cl_kernel kernel = cl().clCreateKernel(call.code->handle, name.c_str(), &status);
  if (status != CL_SUCCESS) complain("PoCL knows no " + name + ": " + std::to_string(status));
  // Bindings are an address and a number; the last argument is the parameters.
  for (cl_uint i = 0; i < call.arguments.size() && status == CL_SUCCESS; ++i) {
    const std::vector<uint8_t>& value = call.arguments[i];
    if (i % 2 == 0 && i + 1 < call.arguments.size()) {
      uintptr_t address = 0;
      std::memcpy(&address, value.data(), sizeof address);
      status = cl().clSetKernelArgSVMPointer(kernel, i, reinterpret_cast<const void*>(address));
    } else {
      status = cl().clSetKernelArg(kernel, i, value.size(), value.data());
    }
  }
  const size_t global[2] = {size_t{call.groups_x} * call.group_size, call.groups_y};
  const size_t local[2] = {call.group_size, 1};
  if (status == CL_SUCCESS)
    status = cl().clEnqueueNDRangeKernel(cl().queue, kernel, 2, nullptr, global, local, 0, nullptr,
                                         nullptr);
  if (status == CL_SUCCESS) status = cl().clFinish(cl().queue);
  if (status != CL_SUCCESS) complain("PoCL does not run " + name + ": " + std::to_string(status));
  cl().clReleaseKernel(kernel);
}

}  // namespace stand_in
