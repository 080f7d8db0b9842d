#include "compiler.hpp"

#include <algorithm>

#include "kernel_sources.hpp"

namespace bitnet::opencl {
namespace {

// In the order of gpu::kernel_id.
constexpr const char* texts[] = {
#define BITNET_KERNEL_TEXT(name, read, written) source::name,
    BITNET_GPU_KERNELS_OF_ALL(BITNET_KERNEL_TEXT)
#undef BITNET_KERNEL_TEXT
};

std::string define(const char* name, const std::string& value) {
  return std::string("#define ") + name + " " + value + "\n";
}

std::string options_of(const device_traits& traits) {
  // No warnings: PoCL prints their number, for example about vectors that an ABI does not know.
  return std::string("-cl-std=CL1.2 -w") +
         (traits.exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

}  // namespace

std::string kernel_name(const gpu::kernel_spec& spec) {
  std::string out = gpu::row_of(spec.id).name;
  for (const uint32_t constant : spec.constants) out += "_" + std::to_string(constant);
  return out;
}

std::string program_source(const gpu::kernel_spec& spec, const device_traits& traits) {
  std::string out = traits.prelude + define("EXACT_DIVISION", traits.exact_division ? "1" : "0") +
                    define("DOUBLES", traits.doubles ? "1" : "0") +
                    define("DOT_PRODUCT", traits.dot_product ? "1" : "0") +
                    define("NAME", kernel_name(spec));
  constexpr const char* constants[] = {"T", "C1", "C2", "C3", "C4"};
  for (size_t i = 0; i < std::size(constants); ++i)
    out += define(constants[i], std::to_string(spec.constants[i]));
  return out + texts[static_cast<size_t>(spec.id)];
}

bool compiler::from_cache(const std::string& key, const std::string& options,
                          cl_program& out) const {
  std::vector<unsigned char> binary;
  std::string note;
  if (!cache.load(key, binary, note)) {
    if (!note.empty()) log(BITNET_LOG_WARN, note);
    return false;
  }
  const unsigned char* data = binary.data();
  const size_t bytes = binary.size();
  cl_int loaded = CL_SUCCESS, status = CL_SUCCESS;
  cl_program program =
      cl.clCreateProgramWithBinary(context, 1, &device.id, &bytes, &data, &loaded, &status);
  if (program && status == CL_SUCCESS && loaded == CL_SUCCESS) {
    status = cl.clBuildProgram(program, 1, &device.id, options.c_str(), nullptr, nullptr);
    if (status == CL_SUCCESS) {
      out = program;
      return true;
    }
  }
  if (program) cl.clReleaseProgram(program);
  log(BITNET_LOG_WARN, "the driver refuses the compiled kernels in " + cache.path_of(key) + ": " +
                           status_name(status != CL_SUCCESS ? status : loaded) +
                           "; they are compiled again");
  return false;
}

void compiler::to_cache(const std::string& key, cl_program program) const {
  if (cache.path_of(key).empty()) return;
  size_t bytes = 0;
  std::string note = "compiled kernels are not kept: the driver does not return them";
  const auto ask = [&](cl_program_info what, size_t room, void* to) {
    return cl.clGetProgramInfo(program, what, room, to, nullptr) == CL_SUCCESS;
  };
  if (ask(CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes) && bytes != 0) {
    std::vector<unsigned char> binary(bytes);
    unsigned char* data = binary.data();
    if (ask(CL_PROGRAM_BINARIES, sizeof(unsigned char*), static_cast<void*>(&data)) &&
        cache.store(key, binary, note))
      return;
  }
  log(BITNET_LOG_DEBUG, note);
}

cl_int compiler::from_source(const std::string& text, const std::string& options, cl_program& out,
                             std::string& errors) const {
  const char* data = text.c_str();
  const size_t bytes = text.size();
  cl_int status = CL_SUCCESS;
  cl_program program = cl.clCreateProgramWithSource(context, 1, &data, &bytes, &status);
  if (!program || status != CL_SUCCESS) return status != CL_SUCCESS ? status : CL_OUT_OF_RESOURCES;
  status = cl.clBuildProgram(program, 1, &device.id, options.c_str(), nullptr, nullptr);
  if (status == CL_SUCCESS) {
    out = program;
    return CL_SUCCESS;
  }
  size_t log_bytes = 0;
  cl.clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &log_bytes);
  errors.assign(log_bytes, '\0');
  if (log_bytes != 0)
    cl.clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, log_bytes, errors.data(),
                             nullptr);
  errors.resize(std::min(errors.find('\0'), errors.size()));
  cl.clReleaseProgram(program);
  return status;
}

bitnet_status compiler::compile(const gpu::kernel_spec& spec, cl_program& out,
                                const sdk::reporter& report) const {
  device_traits traits = device.traits;
  for (;;) {
    const std::string options = options_of(traits);
    const std::string text = program_source(spec, traits);
    const std::string key = device.driver + "\n" + device.info.uuid + " " +
                            device.info.pci_address + "\n" + options + "\n" +
                            std::to_string(text.size()) + " " + std::to_string(hash_of(text)) +
                            " " + std::to_string(hash_of(text, text.size())) + "\n";
    if (from_cache(key, options, out)) return BITNET_OK;
    std::string errors;
    const cl_int status = from_source(text, options, out, errors);
    if (status == CL_SUCCESS) {
      to_cache(key, out);
      return BITNET_OK;
    }
    log(traits.dot_product ? BITNET_LOG_WARN : BITNET_LOG_ERROR,
        "the driver's compiler (" + device.driver + ") fails with " + status_name(status) + ": " +
            errors);
    if (!traits.dot_product)
      return report.from("opencl", status)
          .fail(BITNET_UNAVAILABLE,
                "%s: the driver cannot compile the kernels: %s; what its compiler says is in the "
                "log (-v); update the driver",
                device.info.name, status_name(status).c_str());
    // Some drivers report the extension but lack its functions in OpenCL C 1.2.
    traits.dot_product = false;
  }
}

}  // namespace bitnet::opencl
