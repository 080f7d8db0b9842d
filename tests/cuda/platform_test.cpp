// Where there is no driver, an old one, no device or none that can be used, the answer says what to
// do.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cuda_platform.hpp"
#include "in_a_process.hpp"

namespace bitnet::cuda::test {
namespace {

// What is said by a process in which the stand-in has these settings: why there is no platform, or
// "opened", or why its first device does not open.
std::string said(const char* settings, const char* driver = usual_driver) {
  return said_in_a_process(settings, [&] {
    std::string why;
    auto platform = open_platform(
        driver, [&](uint32_t, const std::string& line) { why += "[" + line + "] "; }, why);
    if (platform) {
      bitnet_error error{};
      error.struct_size = sizeof error;
      std::unique_ptr<gpu::device> device;
      const bitnet_status s = platform->open(0, device, {&error, "test"});
      why += s == BITNET_OK ? "opened" : std::to_string(s) + ": " + error.message;
    }
    return why;
  });
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(cuda_platform, a_device_that_can_be_used) {
  EXPECT_EQ(said(""), "opened");
  EXPECT_EQ(said("arch=91"), "opened");   // runs code of an older minor
  EXPECT_EQ(said("arch=130"), "opened");  // newer than any that is built: from PTX
}
TEST(cuda_platform, without_a_driver) {
  expect_words(said("", "libcuda-absent.so.1"),
               {"libcuda-absent.so.1 is not installed", "install"});
}
TEST(cuda_platform, a_library_that_is_no_driver) {
  expect_words(said("", "libc.so.6"), {"speaks CUDA 0.0", "update the driver"});
}
TEST(cuda_platform, an_old_driver) {
  expect_words(said("version=11080"), {"speaks CUDA 11.8", "need CUDA", "update the driver"});
}
TEST(cuda_platform, a_driver_that_does_not_start) {
  expect_words(said("init=100"), {"shows no device", "CUDA_VISIBLE_DEVICES", "nvidia-smi"});
  expect_words(said("init=34"), {"stub", "LD_LIBRARY_PATH"});
  expect_words(said("init=802"), {"nvidia-fabricmanager"});
  expect_words(said("init=803"), {"different versions", "restart"});
  expect_words(said("init=999"), {"cuInit failed", "(999)", "nvidia-uvm"});
}
TEST(cuda_platform, without_a_device) {
  expect_words(said("devices=0"), {"shows no device", "CUDA_VISIBLE_DEVICES"});
}
TEST(cuda_platform, an_architecture_that_was_not_built) {
  expect_words(said("arch=61"), {"sm_61", "this build has", "BITNET_CUDA_ARCHS=61"});
}
TEST(cuda_platform, compute_modes) {
  expect_words(said("mode=2"), {"prohibited", "nvidia-smi -c DEFAULT"});
  EXPECT_EQ(said("mode=3"), "opened");
  expect_words(said("mode=3,retain=46"), {std::to_string(BITNET_UNAVAILABLE).c_str(), "one process",
                                          "nvidia-smi -c DEFAULT"});
}
TEST(cuda_platform, a_context_that_is_not_to_be_had) {
  expect_words(said("retain=2"), {std::to_string(BITNET_OUT_OF_DEVICE_MEMORY).c_str(), "failed"});
  expect_words(said("retain=214"), {std::to_string(BITNET_DEVICE_LOST).c_str()});
}

}  // namespace
}  // namespace bitnet::cuda::test
