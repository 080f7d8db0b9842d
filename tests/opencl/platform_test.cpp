// Where there is no loader, no driver or no device, the answer says what to do.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "device.hpp"
#include "device_facts.hpp"
#include "platform.hpp"

namespace bitnet::opencl::test {
namespace {

std::string why_not(const char* loader) {
  std::string why;
  const auto platform = open_platform(loader, {"", [](uint32_t, const std::string&) {}}, why);
  EXPECT_EQ(platform, nullptr);
  return why;
}

TEST(opencl_platform, a_missing_loader_is_reported_with_the_packages_to_install) {
  const std::string why = why_not("libOpenCL-absent.so.1");
  EXPECT_NE(why.find("libOpenCL-absent.so.1 is not installed"), std::string::npos) << why;
  EXPECT_NE(why.find("ocl-icd-libopencl1"), std::string::npos) << why;
  EXPECT_NE(why.find("pocl-opencl-icd"), std::string::npos) << why;
}

TEST(opencl_platform, with_a_library_that_is_no_loader) {
  const std::string why = why_not("libc.so.6");
  EXPECT_NE(why.find("OpenCL 1.2 is needed"), std::string::npos) << why;
}

TEST(opencl_platform, a_loader_without_drivers_is_reported) {
  // Set for this test alone: OCL_ICD_VENDORS names a folder without drivers.
  std::string why;
  if (!open_library(usual_loader, why)) GTEST_SKIP() << why;
  why = why_not(usual_loader);
  EXPECT_NE(why.find("finds no driver"), std::string::npos) << why;
  EXPECT_NE(why.find("OCL_ICD_VENDORS"), std::string::npos) << why;
}

// Platforms that have no device, by name.
const char* empty_platforms[] = {"rusticl", "Clover"};

cl_int answer_text(const char* text, size_t room, void* out, size_t* bytes) {
  const size_t n = std::strlen(text) + 1;
  if (bytes) *bytes = n;
  if (out && room >= n) std::memcpy(out, text, n);
  return CL_SUCCESS;
}

TEST(opencl_platform, platforms_without_a_device_are_reported) {
  library cl;
  cl.clGetPlatformIDs = [](cl_uint room, cl_platform_id* out, cl_uint* n) -> cl_int {
    if (n) *n = std::size(empty_platforms);
    for (cl_uint i = 0; out && i < room; ++i)
      out[i] = reinterpret_cast<cl_platform_id>(&empty_platforms[i]);
    return CL_SUCCESS;
  };
  cl.clGetPlatformInfo = [](cl_platform_id platform, cl_platform_info, size_t room, void* out,
                            size_t* bytes) -> cl_int {
    return answer_text(*reinterpret_cast<const char**>(platform), room, out, bytes);
  };
  cl.clGetDeviceIDs = [](cl_platform_id, cl_device_type, cl_uint, cl_device_id*,
                         cl_uint*) -> cl_int { return CL_DEVICE_NOT_FOUND; };
  std::string why;
  EXPECT_TRUE(list_devices(cl, why).empty());
  EXPECT_NE(why.find("rusticl has no device unless RUSTICL_ENABLE names"), std::string::npos)
      << why;
  EXPECT_NE(why.find("Clover has no device; install"), std::string::npos) << why;
}

// What rusticl reports of Mesa's driver in software, which is right in all but one thing.
TEST(opencl_platform, a_driver_that_ends_loops_early_is_rejected) {
  library cl;
  cl.clGetPlatformIDs = [](cl_uint room, cl_platform_id* out, cl_uint* n) -> cl_int {
    if (n) *n = 1;
    if (out && room > 0) out[0] = reinterpret_cast<cl_platform_id>(&empty_platforms[0]);
    return CL_SUCCESS;
  };
  cl.clGetPlatformInfo = [](cl_platform_id, cl_platform_info, size_t room, void* out,
                            size_t* bytes) -> cl_int {
    return answer_text("rusticl", room, out, bytes);
  };
  cl.clGetDeviceIDs = [](cl_platform_id, cl_device_type, cl_uint room, cl_device_id* out,
                         cl_uint* n) -> cl_int {
    if (n) *n = 1;
    if (out && room > 0) out[0] = reinterpret_cast<cl_device_id>(&empty_platforms[1]);
    return CL_SUCCESS;
  };
  cl.clGetDeviceInfo = [](cl_device_id, cl_device_info what, size_t room, void* out,
                          size_t* bytes) -> cl_int {
    if (what == CL_DEVICE_NAME) return answer_text("llvmpipe (LLVM 15.0.6)", room, out, bytes);
    if (what == CL_DEVICE_VERSION) return answer_text("OpenCL 3.0", room, out, bytes);
    const cl_bool yes = CL_TRUE;
    if (room != sizeof yes || !out) return CL_INVALID_VALUE;
    std::memcpy(out, &yes, sizeof yes);
    return CL_SUCCESS;
  };
  std::string why;
  const std::vector<device_facts> all = list_devices(cl, why);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].refusal.find("65535 passes"), std::string::npos) << all[0].refusal;
  EXPECT_NE(why.find("use PoCL"), std::string::npos) << why;
}

// AMD's drivers report how much memory is free, in KiB; other drivers do not.
TEST(opencl_status_of_memory, is_reported_where_the_driver_reports_it) {
  static size_t free_kib = 0;
  static cl_int answer = CL_SUCCESS;
  library cl;
  cl.clGetDeviceInfo = [](cl_device_id, cl_device_info what, size_t room, void* out,
                          size_t* bytes) -> cl_int {
    if (what != CL_DEVICE_GLOBAL_FREE_MEMORY_AMD) return CL_INVALID_VALUE;
    const size_t all[2] = {free_kib, free_kib};
    if (room < sizeof all) return CL_INVALID_VALUE;
    std::memcpy(out, all, sizeof all);
    *bytes = sizeof all;
    return answer;
  };
  const struct {
    const char* why;
    bool extension;
    uint64_t total;
    size_t kib;
    cl_int answer;
    bool known;
    uint64_t free;
  } rows[] = {{"half is free", true, 4096, 2, CL_SUCCESS, true, 2048},
              {"nothing is free", true, 4096, 0, CL_SUCCESS, true, 0},
              {"another vendor", false, 4096, 2, CL_SUCCESS, false, 0},
              {"no total to compare with", true, 0, 2, CL_SUCCESS, false, 0},
              {"the driver refuses", true, 4096, 2, CL_INVALID_VALUE, false, 0},
              {"more than bytes can count", true, 4096, SIZE_MAX, CL_SUCCESS, false, 0},
              {"more than there is", true, 4096, 5, CL_SUCCESS, true, 4096}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    free_kib = row.kib;
    answer = row.answer;
    device_facts facts;
    facts.reports_free_memory = row.extension;
    facts.info.memory_total_bytes = row.total;
    const log_function log = [](uint32_t, const std::string&) {};
    const device d(cl, facts, log, "off");
    bitnet_device_status s{};
    EXPECT_EQ(d.status(s, sdk::reporter(nullptr, "test")), BITNET_OK);
    EXPECT_EQ(s.known, row.known ? BITNET_STATUS_MEMORY : 0u);
    EXPECT_EQ(s.memory_total_bytes, row.known ? row.total : 0u);
    EXPECT_EQ(s.memory_free_bytes, row.free);
  }
}

TEST(opencl_limits, have_the_name_of_the_api) {
  device_facts facts;
  facts.info.max_allocation_bytes = uint64_t{1} << 20;
  const gpu::capabilities can = common_facts(facts).capabilities;
  EXPECT_EQ(gpu::binding_limit(can).text(), "1048576 (CL_DEVICE_MAX_MEM_ALLOC_SIZE)");
  EXPECT_EQ(can.max_allocation_name, can.max_binding_name);
}

TEST(opencl_errors, carry_the_drivers_number) {
  const library cl;
  const device_facts facts;
  const log_function log = [](uint32_t, const std::string&) {};
  const context c(cl, facts, log);
  bitnet_error err{};
  err.struct_size = sizeof err;
  EXPECT_EQ(c.fail("clX", CL_OUT_OF_RESOURCES, sdk::reporter(&err, "slot")),
            BITNET_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(err.native_code, CL_OUT_OF_RESOURCES);
  EXPECT_STREQ(err.domain, "opencl");
}

TEST(opencl_extensions, are_whole_words) {
  EXPECT_TRUE(has_extension("cl_khr_fp64 cl_khr_fp16", "cl_khr_fp16"));
  EXPECT_TRUE(has_extension("cl_khr_fp64", "cl_khr_fp64"));
  EXPECT_FALSE(has_extension("cl_khr_fp64_x xcl_khr_fp64", "cl_khr_fp64"));
  EXPECT_FALSE(has_extension("", "cl_khr_fp64"));
}

TEST(opencl_status, has_a_name_and_its_number) {
  EXPECT_EQ(status_name(CL_OUT_OF_RESOURCES), "CL_OUT_OF_RESOURCES (-5)");
  EXPECT_EQ(status_name(-12345), "OpenCL status -12345");
}

}  // namespace
}  // namespace bitnet::opencl::test
