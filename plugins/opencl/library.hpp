#pragma once
// The OpenCL loader, opened when it is needed: a machine without one is an answer, not a plugin
// that cannot be loaded.

#include <memory>
#include <string>

#include "headers.hpp"

namespace bitnet::opencl {

// Every call of OpenCL 1.2 that this backend makes; the only list of them.
#define BITNET_OPENCL_CALLS(X)   \
  X(clGetPlatformIDs)            \
  X(clGetPlatformInfo)           \
  X(clGetDeviceIDs)              \
  X(clGetDeviceInfo)             \
  X(clCreateContext)             \
  X(clReleaseContext)            \
  X(clCreateCommandQueue)        \
  X(clReleaseCommandQueue)       \
  X(clCreateBuffer)              \
  X(clReleaseMemObject)          \
  X(clEnqueueMapBuffer)          \
  X(clEnqueueUnmapMemObject)     \
  X(clEnqueueReadBuffer)         \
  X(clEnqueueWriteBuffer)        \
  X(clEnqueueCopyBuffer)         \
  X(clEnqueueFillBuffer)         \
  X(clCreateProgramWithSource)   \
  X(clCreateProgramWithBinary)   \
  X(clBuildProgram)              \
  X(clGetProgramInfo)            \
  X(clGetProgramBuildInfo)       \
  X(clReleaseProgram)            \
  X(clCreateKernel)              \
  X(clReleaseKernel)             \
  X(clSetKernelArg)              \
  X(clGetKernelWorkGroupInfo)    \
  X(clEnqueueNDRangeKernel)      \
  X(clEnqueueMarkerWithWaitList) \
  X(clFlush)                     \
  X(clFinish)                    \
  X(clGetEventProfilingInfo)     \
  X(clSetEventCallback)          \
  X(clReleaseEvent)

// The calls, once the loader is open. It stays open as long as the process runs: drivers start
// threads whose code must not go away.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  BITNET_OPENCL_CALLS(BITNET_OPENCL_MEMBER)
#undef BITNET_OPENCL_MEMBER
};

// Opens the loader of this file name. nullptr, and `why` says what the user can do, if it is not
// there or older than OpenCL 1.2.
std::unique_ptr<library> open_library(const char* file, std::string& why);

// "CL_OUT_OF_RESOURCES (-5)".
std::string status_name(cl_int status);

}  // namespace bitnet::opencl
