#pragma once
// The OpenCL headers in their newest version. What a driver supports is checked at run time.

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue: 1.2 drivers have no other

#include <CL/cl.h>
#include <CL/cl_ext.h>
