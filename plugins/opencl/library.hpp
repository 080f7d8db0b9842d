#pragma once
// The OpenCL loader, opened on first use, so that the plugin loads on a machine without one.

#include <memory>
#include <string>

#include "headers.hpp"

namespace bitnet::opencl {

// The only list of the OpenCL 1.2 calls that this backend makes.
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

// The calls of the open loader. It is never unloaded, because drivers start threads that run its
// code.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  BITNET_OPENCL_CALLS(BITNET_OPENCL_MEMBER)
#undef BITNET_OPENCL_MEMBER
};

// Opens the loader of this file name. If it is missing or older than OpenCL 1.2, it returns
// nullptr, and `why` says what the user can do.
std::unique_ptr<library> open_library(const char* file, std::string& why);

// "CL_OUT_OF_RESOURCES (-5)".
std::string status_name(cl_int status);

}  // namespace bitnet::opencl
