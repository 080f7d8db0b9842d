// What needs no device: texts of kernels, extents of memory, and libraries that are none.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "kernel_text.hpp"
#include "library.hpp"
#include "memory.hpp"

namespace bitnet::webgpu {
namespace {

using gpu::kernel_id;

size_t times(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(webgpu_text, every_kernel_of_the_contract_has_one) {
  for (uint32_t id = 0; id < static_cast<uint32_t>(kernel_id::every); ++id) {
    const gpu::kernel_spec spec{static_cast<kernel_id>(id), {8, 1, 1, 1, 32}};
    const std::string text = text_of(spec, {}, none_shared);
    SCOPED_TRACE(name_of(spec.id));
    EXPECT_EQ(times(text, "@compute"), 1u);
    // The header is the uniform 0, and each binding of the contract is declared once.
    for (uint32_t b = 0; b < webgpu::bindings_of(spec.id); ++b)
      EXPECT_EQ(times(text, "@binding(" + std::to_string(b) + ")"), 1u) << "binding " << b;
    EXPECT_EQ(times(text, "@binding(8)"), 1u);
  }
  EXPECT_EQ(text_of({kernel_id::head_copy, {}}, {}, none_shared), "");
}

TEST(webgpu_text, memory_bound_twice_has_one_name) {
  shared_bindings same = none_shared;
  same[2] = 1;  // elementwise: b is a
  const std::string text = text_of({kernel_id::elementwise, {8, 10}}, {}, same);
  EXPECT_EQ(times(text, "@binding(2)"), 0u);
  EXPECT_EQ(times(text, "b_in"), 0u);
  EXPECT_GE(times(text, "a_in["), 3u);
  EXPECT_EQ(times(text, "@binding(3)"), 1u);
}

TEST(webgpu_text, forms_differ_where_the_language_has_more) {
  const gpu::kernel_spec spec{kernel_id::bit_linear, {8, 1, 1, 4, 32}};
  const std::string plain = text_of(spec, {}, none_shared);
  const std::string more = text_of(spec, {true, true, true}, none_shared);
  const std::string naga = text_of(spec, {true, true, false}, none_shared);
  EXPECT_EQ(times(plain, "dot4I8Packed"), 0u);
  EXPECT_EQ(times(plain, "subgroupMax"), 0u);
  EXPECT_EQ(times(more, "dot4I8Packed"), 1u);
  EXPECT_EQ(times(more, "subgroupMax("), 1u);
  EXPECT_EQ(more.rfind("enable subgroups;", 0), 0u);
  EXPECT_EQ(times(naga, "enable"), 0u);
}

// Every product that is added to, and every sum that is taken from, is rounded between: a compiler
// of WGSL may fuse them.
TEST(webgpu_text, products_are_rounded_before_they_are_added) {
  const std::string text = text_of({kernel_id::linear_dense, {8, 1, 1, 2}}, {}, none_shared);
  EXPECT_GE(times(text, "rounded(w * "), 1u);
  EXPECT_EQ(times(text, "fma("), 0u);
}

bool covers(const std::vector<extent>& all, uint64_t at) {
  return std::any_of(all.begin(), all.end(),
                     [&](const extent& e) { return e.offset <= at && at < e.end(); });
}

TEST(webgpu_extents, united_has_each_byte_once) {
  const std::vector<extent> all = united({{8, 4}, {0, 4}, {4, 2}, {20, 8}, {22, 2}, {30, 0}});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].offset, 0u);
  EXPECT_EQ(all[0].bytes, 6u);
  EXPECT_EQ(all[1].offset, 8u);
  EXPECT_EQ(all[2].offset, 20u);
  EXPECT_EQ(all[2].bytes, 8u);
}

TEST(webgpu_extents, without_leaves_what_the_others_lack) {
  constexpr uint64_t end = 12;
  for (uint64_t a = 0; a < end; ++a) {
    for (uint64_t b = a; b <= end; ++b) {
      const std::vector<extent> others = {{a, b - a}, {3, 2}, {9, 9}};
      const std::vector<extent> left = without({2, 8}, others);
      for (uint64_t at = 0; at < end; ++at) {
        const bool wanted = at >= 2 && at < 10 && !covers(others, at);
        EXPECT_EQ(covers(left, at), wanted) << a << " to " << b << " at " << at;
      }
    }
  }
}

TEST(webgpu_library, one_that_is_not_there) {
  std::string why;
  EXPECT_EQ(open_library("/nowhere/libwgpu_native.so", why), nullptr);
  EXPECT_NE(why.find("BITNET_WEBGPU_LIBRARY"), std::string::npos) << why;
  EXPECT_NE(why.find("/nowhere/libwgpu_native.so"), std::string::npos) << why;
}

TEST(webgpu_library, one_of_whatever_folder_this_is) {
  std::string why;
  EXPECT_EQ(open_library("build/libwgpu_native.so", why), nullptr);
  EXPECT_NE(why.find("whole path"), std::string::npos) << why;
}

TEST(webgpu_library, one_that_is_none) {
  std::string why;
  EXPECT_EQ(open_library("libm.so.6", why), nullptr);
  EXPECT_NE(why.find("has no wgpuCreateInstance"), std::string::npos) << why;
  EXPECT_NE(why.find("update it"), std::string::npos) << why;
}

}  // namespace
}  // namespace bitnet::webgpu
