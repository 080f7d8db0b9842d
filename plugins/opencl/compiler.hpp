#pragma once
// Makes an OpenCL program of a kernel's specification. Its binary goes to the cache, its errors to
// the log.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "binary_cache.hpp"
#include "bitnet/abi/host.h"
#include "bitnet/sdk/guard.hpp"
#include "device_facts.hpp"
#include "gpu-common/kernels.hpp"
#include "library.hpp"

namespace bitnet::opencl {

using log_function = std::function<void(uint32_t level, const std::string& message)>;

// The name of the kernel function for a specification.
std::string kernel_name(const gpu::kernel_spec& spec);

// OpenCL C 1.2 text of the kernel function for a specification.
std::string program_source(const gpu::kernel_spec& spec, const device_traits& traits);

struct compiler {
  const library& cl;
  const device_facts& device;
  cl_context context;
  const binary_cache& cache;
  const log_function& log;

  // Compiles a kernel as a program, or loads it from the cache. The caller releases it.
  bitnet_status compile(const gpu::kernel_spec& spec, cl_program& out,
                        const sdk::reporter& report) const;

 private:
  bool from_cache(const std::string& key, const std::string& options, cl_program& out) const;
  void to_cache(const std::string& key, cl_program program) const;
  // CL_SUCCESS, or the driver's error; then `errors` is the compiler's log.
  cl_int from_source(const std::string& source, const std::string& options, cl_program& out,
                     std::string& errors) const;
};

}  // namespace bitnet::opencl
