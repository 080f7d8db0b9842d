#pragma once
// The OpenCL headers, for what the newest of them declare: which of it a driver has is asked when
// it runs.

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue: all that a 1.2 driver has

#include <CL/cl.h>
#include <CL/cl_ext.h>
