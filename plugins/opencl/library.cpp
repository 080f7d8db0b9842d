#include "library.hpp"

#include <dlfcn.h>

namespace bitnet::opencl {

std::unique_ptr<library> open_library(const char* file, std::string& why) {
  void* opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    why = std::string("the OpenCL loader ") + file +
          " is not installed: install ocl-icd-libopencl1 and a driver for your device, such as "
          "intel-opencl-icd, nvidia-opencl-icd, mesa-opencl-icd or, for CPUs, pocl-opencl-icd";
    return nullptr;
  }
  auto out = std::make_unique<library>();
  const char* missing = nullptr;
#define BITNET_OPENCL_FIND(name)                                           \
  out->name = reinterpret_cast<decltype(out->name)>(dlsym(opened, #name)); \
  if (!out->name) missing = #name;
  BITNET_OPENCL_CALLS(BITNET_OPENCL_FIND)
#undef BITNET_OPENCL_FIND
  if (!missing) return out;
  why = std::string("the OpenCL loader ") + file + " has no " + missing +
        ": OpenCL 1.2 is needed; update ocl-icd-libopencl1";
  dlclose(opened);
  return nullptr;
}

std::string status_name(cl_int status) {
  struct named {
    cl_int value;
    const char* name;
  };
#define BITNET_OPENCL_STATUS(name) {name, #name},
  static constexpr named rows[] = {
      BITNET_OPENCL_STATUS(CL_DEVICE_NOT_FOUND)                           //
      BITNET_OPENCL_STATUS(CL_DEVICE_NOT_AVAILABLE)                       //
      BITNET_OPENCL_STATUS(CL_COMPILER_NOT_AVAILABLE)                     //
      BITNET_OPENCL_STATUS(CL_MEM_OBJECT_ALLOCATION_FAILURE)              //
      BITNET_OPENCL_STATUS(CL_OUT_OF_RESOURCES)                           //
      BITNET_OPENCL_STATUS(CL_OUT_OF_HOST_MEMORY)                         //
      BITNET_OPENCL_STATUS(CL_BUILD_PROGRAM_FAILURE)                      //
      BITNET_OPENCL_STATUS(CL_MAP_FAILURE)                                //
      BITNET_OPENCL_STATUS(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)  //
      BITNET_OPENCL_STATUS(CL_INVALID_VALUE)                              //
      BITNET_OPENCL_STATUS(CL_INVALID_DEVICE)                             //
      BITNET_OPENCL_STATUS(CL_INVALID_CONTEXT)                            //
      BITNET_OPENCL_STATUS(CL_INVALID_COMMAND_QUEUE)                      //
      BITNET_OPENCL_STATUS(CL_INVALID_MEM_OBJECT)                         //
      BITNET_OPENCL_STATUS(CL_INVALID_BINARY)                             //
      BITNET_OPENCL_STATUS(CL_INVALID_BUILD_OPTIONS)                      //
      BITNET_OPENCL_STATUS(CL_INVALID_PROGRAM)                            //
      BITNET_OPENCL_STATUS(CL_INVALID_PROGRAM_EXECUTABLE)                 //
      BITNET_OPENCL_STATUS(CL_INVALID_KERNEL_NAME)                        //
      BITNET_OPENCL_STATUS(CL_INVALID_KERNEL)                             //
      BITNET_OPENCL_STATUS(CL_INVALID_ARG_INDEX)                          //
      BITNET_OPENCL_STATUS(CL_INVALID_ARG_VALUE)                          //
      BITNET_OPENCL_STATUS(CL_INVALID_ARG_SIZE)                           //
      BITNET_OPENCL_STATUS(CL_INVALID_KERNEL_ARGS)                        //
      BITNET_OPENCL_STATUS(CL_INVALID_WORK_GROUP_SIZE)                    //
      BITNET_OPENCL_STATUS(CL_INVALID_WORK_ITEM_SIZE)                     //
      BITNET_OPENCL_STATUS(CL_INVALID_BUFFER_SIZE)                        //
      BITNET_OPENCL_STATUS(CL_PLATFORM_NOT_FOUND_KHR)};
#undef BITNET_OPENCL_STATUS
  const std::string number = std::to_string(status);
  for (const named& row : rows)
    if (row.value == status) return std::string(row.name) + " (" + number + ")";
  return "OpenCL status " + number;
}

}  // namespace bitnet::opencl
