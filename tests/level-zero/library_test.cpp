// How the loader is found and initialised, and that a failed zeInit is the last call.

#include "library.hpp"

#include <gtest/gtest.h>

namespace bitnet::level_zero {
namespace {

TEST(library, one_that_is_not_installed_says_what_to_install) {
  std::string why;
  EXPECT_EQ(open_library("libno_such_loader.so.1", why), nullptr);
  EXPECT_NE(why.find("libze1"), std::string::npos) << why;
}

TEST(library, one_that_is_something_else_lacks_a_call) {
  std::string why;
  EXPECT_EQ(open_library("libm.so.6", why), nullptr);
  EXPECT_NE(why.find("libm.so.6 has no ze"), std::string::npos) << why;
}

// Its other calls end the process.
TEST(library, nothing_is_called_after_a_failed_init) {
  std::string why;
  EXPECT_EQ(open_library(BITNET_FAILED_LOADER, why), nullptr);
  EXPECT_NE(why.find("ZE_RESULT_ERROR_UNINITIALIZED (0x78000001)"), std::string::npos) << why;
  EXPECT_NE(why.find("intel-opencl-icd"), std::string::npos) << why;
}

TEST(library, the_first_answer_holds_for_the_process) {
  std::string first, second;
  const library* const calls = library_of_process(first);
  EXPECT_EQ(library_of_process(second), calls);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.empty(), calls != nullptr) << first;
}

TEST(library, results_have_names_and_numbers) {
  EXPECT_EQ(result_name(ZE_RESULT_ERROR_DEVICE_LOST), "ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)");
  EXPECT_EQ(result_name(static_cast<ze_result_t>(0x12345)), "Level Zero result 0x12345");
}

}  // namespace
}  // namespace bitnet::level_zero
