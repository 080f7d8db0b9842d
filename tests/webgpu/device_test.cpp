// The driver on whatever library the environment names: how an adapter is believed, how host memory
// travels, and what is rejected.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "bitnet/sdk/formats.hpp"
#include "device.hpp"
#include "known_answer.hpp"

namespace bitnet::webgpu {
namespace {

using gpu::kernel_id;
using gpu::memory_place;

uint32_t bits(float value) {
  return std::bit_cast<uint32_t>(value);
}

// The first adapter of the library, for all tests.
class webgpu_device : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* file = std::getenv("BITNET_WEBGPU_LIBRARY");
    calls_ = open_library(file ? file : "", why_);
    if (!calls_) return;
    runtime_ = std::make_unique<runtime>(*calls_);
    if (runtime_->start({nullptr, "test"}) != BITNET_OK) return;
    std::vector<std::string> refusals;
    adapters_ = find_adapters(*runtime_, {}, refusals);
    why_ = refusals.empty() ? "no adapter" : refusals[0];
  }
  static void TearDownTestSuite() {
    if (runtime_)
      for (const adapter& a : adapters_) calls_->AdapterRelease(a.handle);
    adapters_.clear();
    runtime_.reset();
    calls_.reset();
  }
  void SetUp() override {
    if (adapters_.empty()) GTEST_SKIP() << why_;
    error_.struct_size = sizeof error_;
  }

  void must(bitnet_status s) { ASSERT_EQ(s, BITNET_OK) << error_.message; }
  std::unique_ptr<device> open(const adapter& a) {
    auto out = std::make_unique<device>(*runtime_, a);
    EXPECT_EQ(out->open(report_), BITNET_OK) << error_.message;
    return out;
  }
  std::unique_ptr<gpu::buffer> memory_of_words(device& d, memory_place where,
                                               const std::vector<uint32_t>& words) {
    std::unique_ptr<gpu::buffer> out;
    must(d.allocate(4 * words.size(), where, out, report_));
    must(d.upload(*out, 0, words.data(), 4 * words.size(), report_));
    return out;
  }
  std::vector<uint32_t> words_of(device& d, const gpu::buffer& from) {
    std::vector<uint32_t> out(from.size() / 4);
    must(d.download(from, 0, out.data(), from.size(), report_));
    return out;
  }

  static inline std::unique_ptr<library> calls_;
  static inline std::unique_ptr<runtime> runtime_;
  static inline std::vector<adapter> adapters_;
  static inline std::string why_;
  bitnet_error error_{};
  const sdk::reporter report_{&error_, "test"};
};

TEST_F(webgpu_device, says_what_it_is) {
  for (const adapter& a : adapters_) {
    EXPECT_NE(a.about.name, "");
    EXPECT_EQ(a.about.capabilities.max_binding_name, "maxStorageBufferBindingSize");
    EXPECT_GE(a.about.capabilities.max_binding_bytes, uint64_t{128} << 20);
    EXPECT_GE(a.about.capabilities.max_bindings, gpu::max_kernel_bindings);
    EXPECT_GE(a.about.capabilities.max_groups, 65535u);
  }
}

TEST_F(webgpu_device, knows_the_answers_in_every_form) {
  for (const bool subgroups : {false, true}) {
    for (const bool packed : {false, true}) {
      adapter form = adapters_[0];
      form.language.subgroups &= subgroups;
      form.language.packed_dot &= packed;
      const auto d = open(form);
      EXPECT_EQ(check_answers(*d, report_), BITNET_OK) << error_.message;
    }
  }
}

// As an adapter without a driver does: each dispatch is accepted, and nothing is computed.
TEST_F(webgpu_device, one_that_computes_nothing_is_rejected) {
  library idle = *calls_;
  idle.ComputePassEncoderDispatchWorkgroups = [](compute_pass_encoder_handle, uint32_t, uint32_t,
                                                 uint32_t) {};
  runtime on(idle);
  must(on.start(report_));
  std::vector<std::string> refusals;
  const std::vector<adapter> found = find_adapters(on, {}, refusals);
  ASSERT_FALSE(found.empty());
  {
    device d(on, found[0]);
    must(d.open(report_));
    EXPECT_EQ(check_answers(d, report_), BITNET_UNAVAILABLE);
    EXPECT_NE(std::strstr(error_.message, "computes wrong numbers"), nullptr) << error_.message;
  }
  for (const adapter& a : found) idle.AdapterRelease(a.handle);
}

TEST_F(webgpu_device, the_null_adapter_is_rejected_by_its_name) {
  library fake = *calls_;
  static const library* real = nullptr;
  real = calls_.get();
  fake.AdapterGetInfo = [](adapter_handle a, adapter_info* out) {
    const uint32_t s = real->AdapterGetInfo(a, out);
    out->backendType = backend_null;
    return s;
  };
  runtime on(fake);
  must(on.start(report_));
  std::vector<std::string> refusals;
  EXPECT_TRUE(find_adapters(on, {}, refusals).empty());
  ASSERT_FALSE(refusals.empty());
  EXPECT_NE(refusals[0].find("null adapter"), std::string::npos) << refusals[0];
}

TEST_F(webgpu_device, one_with_too_few_storage_buffers_is_rejected_by_the_limit) {
  library fake = *calls_;
  static const library* real = nullptr;
  real = calls_.get();
  fake.AdapterGetLimits = [](adapter_handle a, limits* out) {
    const uint32_t s = real->AdapterGetLimits(a, out);
    out->maxStorageBuffersPerShaderStage = 4;
    return s;
  };
  runtime on(fake);
  must(on.start(report_));
  std::vector<std::string> refusals;
  EXPECT_TRUE(find_adapters(on, {}, refusals).empty());
  ASSERT_FALSE(refusals.empty());
  EXPECT_NE(refusals[0].find("maxStorageBuffersPerShaderStage is 4"), std::string::npos)
      << refusals[0];
}

TEST_F(webgpu_device, a_buffer_that_is_too_large_is_rejected_by_the_limit) {
  const auto d = open(adapters_[0]);
  std::unique_ptr<gpu::buffer> out;
  EXPECT_EQ(d->allocate(adapters_[0].most.maxBufferSize + 4, memory_place::device, out, report_),
            BITNET_OUT_OF_DEVICE_MEMORY);
  EXPECT_NE(std::strstr(error_.message, "maxBufferSize"), nullptr) << error_.message;
}

TEST_F(webgpu_device, memory_starts_as_zeros_and_keeps_what_is_uploaded) {
  const auto d = open(adapters_[0]);
  for (const memory_place where : {memory_place::device, memory_place::host}) {
    std::unique_ptr<gpu::buffer> memory;
    must(d->allocate(4 * 1000, where, memory, report_));
    EXPECT_EQ(words_of(*d, *memory), std::vector<uint32_t>(1000));
    EXPECT_EQ(memory->mapped() != nullptr, where == memory_place::host);
    std::vector<uint32_t> words(1000);
    std::iota(words.begin(), words.end(), 1u);
    must(d->upload(*memory, 4 * 100, words.data(), 4 * 500, report_));
    const std::vector<uint32_t> got = words_of(*d, *memory);
    EXPECT_EQ(got[99], 0u);
    EXPECT_EQ(got[100], 1u);
    EXPECT_EQ(got[599], 500u);
    EXPECT_EQ(got[600], 0u);
  }
}

// Ranges of one buffer, which WebGPU does not copy itself.
TEST_F(webgpu_device, copies_within_a_buffer) {
  const auto d = open(adapters_[0]);
  std::vector<uint32_t> words(64);
  std::iota(words.begin(), words.end(), 0u);
  const auto memory = memory_of_words(*d, memory_place::device, words);
  gpu::command copy;
  copy.bindings = {{memory.get(), 0, memory->size()}, {memory.get(), 0, memory->size()}};
  copy.copies = {{0, 128, 16}, {32, 64, 8}};
  std::unique_ptr<gpu::recording> work;
  must(d->record({&copy, 1}, false, work, report_));
  std::unique_ptr<gpu::queue> turn;
  must(d->make_queue(turn, report_));
  must(turn->submit(*work, 1, report_));
  must(turn->wait(1, UINT64_MAX, report_));
  for (uint32_t i = 0; i < 4; ++i) words[32 + i] = i;
  for (uint32_t i = 0; i < 2; ++i) words[16 + i] = 8 + i;
  EXPECT_EQ(words_of(*d, *memory), words);
}

// y = a + b of `n` elements, as one command.
gpu::command addition(const gpu::kernel& add, const gpu::buffer& header, const gpu::binding& a,
                      const gpu::binding& b, gpu::binding y, uint32_t n) {
  y.written = true;
  gpu::command out;
  out.run = &add;
  out.bindings = {{&header, 0, 64}, a, b, y};
  out.params = {gpu::rows_are_tokens, n, 0};
  out.groups_x = 2;
  return out;
}

// A submission sees what the host wrote before it, and what an earlier one writes that the host has
// not waited for; what the host writes beside it stays.
TEST_F(webgpu_device, host_memory_travels_with_submissions) {
  const auto d = open(adapters_[0]);
  constexpr uint32_t n = 64;  // words of a part
  std::unique_ptr<gpu::buffer> header, memory;
  must(d->allocate(64, memory_place::host, header, report_));
  must(d->allocate(4 * n * 4, memory_place::host, memory, report_));
  static_cast<uint32_t*>(header->mapped())[0] = 1;
  auto* const words = static_cast<uint32_t*>(memory->mapped());
  std::fill(words, words + n, bits(1));
  std::fill(words + n, words + 2 * n, bits(2));
  std::fill(words + 2 * n, words + 4 * n, bits(-5));
  const auto part = [&](uint64_t i) { return gpu::binding{memory.get(), 4 * n * i, 4 * n}; };
  std::unique_ptr<gpu::kernel> add;
  const uint32_t threads = adapters_[0].about.capabilities.group_size;
  must(d->make_kernel({kernel_id::elementwise, {threads, 9}}, add, report_));
  std::unique_ptr<gpu::recording> first, second;
  const gpu::command one = addition(*add, *header, part(0), part(1), part(2), n);
  const gpu::command two = addition(*add, *header, part(2), part(0), part(1), n);
  must(d->record({&one, 1}, false, first, report_));
  must(d->record({&two, 1}, false, second, report_));
  std::unique_ptr<gpu::queue> turn;
  must(d->make_queue(turn, report_));
  must(turn->submit(*first, 1, report_));
  must(turn->submit(*second, 2, report_));
  words[3 * n] = bits(7);  // of no submission
  must(turn->wait(2, UINT64_MAX, report_));
  EXPECT_EQ(words[0], bits(1));
  EXPECT_EQ(words[2 * n], bits(3));
  EXPECT_EQ(words[n], bits(4));
  EXPECT_EQ(words[2 * n - 1], bits(4));
  EXPECT_EQ(words[3 * n], bits(7));
  EXPECT_EQ(words[3 * n + 1], bits(-5));
  uint64_t reached = 0;
  must(turn->poll(reached, report_));
  EXPECT_EQ(reached, 2u);
  // Again, with what the host changed since.
  std::fill(words, words + n, bits(10));
  must(turn->submit(*first, 3, report_));
  must(turn->wait(3, UINT64_MAX, report_));
  EXPECT_EQ(words[2 * n], bits(14));
}

// a and b may be the same memory, which is then bound once.
TEST_F(webgpu_device, one_memory_bound_twice) {
  const auto d = open(adapters_[0]);
  constexpr uint32_t n = 16;
  const auto header =
      memory_of_words(*d, memory_place::host, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const auto a = memory_of_words(*d, memory_place::device, std::vector<uint32_t>(n, bits(1.5f)));
  const auto y = memory_of_words(*d, memory_place::device, std::vector<uint32_t>(n));
  std::unique_ptr<gpu::kernel> add;
  must(d->make_kernel({kernel_id::elementwise, {8, 9}}, add, report_));
  const gpu::command one =
      addition(*add, *header, {a.get(), 0, 4 * n}, {a.get(), 0, 4 * n}, {y.get(), 0, 4 * n}, n);
  std::unique_ptr<gpu::recording> work;
  must(d->record({&one, 1}, false, work, report_));
  std::unique_ptr<gpu::queue> turn;
  must(d->make_queue(turn, report_));
  must(turn->submit(*work, 1, report_));
  must(turn->wait(1, UINT64_MAX, report_));
  EXPECT_EQ(words_of(*d, *y), std::vector<uint32_t>(n, bits(3)));
  // A part of it alone has no name of its own.
  const gpu::command torn = addition(*add, *header, {a.get(), 0, 4 * n}, {a.get(), 32, 4 * n - 32},
                                     {y.get(), 0, 4 * n}, n);
  EXPECT_EQ(d->record({&torn, 1}, false, work, report_), BITNET_INTERNAL);
}

// Weights in f16, and activations and sums that f16 could not hold: others that compute in f16 here
// write nonsense.
TEST_F(webgpu_device, sums_that_f16_could_not_hold) {
  const auto d = open(adapters_[0]);
  constexpr uint32_t k = 64, m = 3;
  const auto header =
      memory_of_words(*d, memory_place::host, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  std::vector<uint32_t> x(k), w(m * k / 2);
  for (uint32_t i = 0; i < k; ++i) x[i] = bits(70000.0f + static_cast<float>(i));
  const auto half = [](float v) { return static_cast<uint32_t>(sdk::f32_to_f16(v)); };
  const float rows[m] = {65504.0f, -2.0f, 0x1p-24f};
  for (uint32_t r = 0; r < m; ++r)
    for (uint32_t i = 0; i < k / 2; ++i) w[r * k / 2 + i] = half(rows[r]) | half(rows[r]) << 16;
  const auto in = memory_of_words(*d, memory_place::device, x);
  const auto matrix = memory_of_words(*d, memory_place::device, w);
  const auto y = memory_of_words(*d, memory_place::device, std::vector<uint32_t>(m));
  std::unique_ptr<gpu::kernel> product;
  must(d->make_kernel({kernel_id::linear_dense, {8, 1, 1, BITNET_FORMAT_F16}}, product, report_));
  gpu::command run;
  run.run = product.get();
  run.bindings = {{header.get(), 0, 64},
                  {in.get(), 0, in->size()},
                  {matrix.get(), 0, matrix->size()},
                  {y.get(), 0, y->size(), true}};
  run.params = {gpu::rows_are_tokens, k, m, k / 2, 0, m};
  std::unique_ptr<gpu::recording> work;
  must(d->record({&run, 1}, false, work, report_));
  std::unique_ptr<gpu::queue> turn;
  must(d->make_queue(turn, report_));
  must(turn->submit(*work, 1, report_));
  must(turn->wait(1, UINT64_MAX, report_));
  const std::vector<uint32_t> got = words_of(*d, *y);
  for (uint32_t r = 0; r < m; ++r) {
    float sum = 0;  // in the kernel's order, of one lane
    for (uint32_t i = 0; i < k; ++i) {
      const volatile float one = rows[r] * std::bit_cast<float>(x[i]);
      sum += one;
    }
    EXPECT_EQ(got[r], bits(sum)) << "row " << r << ": " << std::bit_cast<float>(got[r]) << ", not "
                                 << sum;
  }
}

TEST_F(webgpu_device, a_text_that_is_rejected_says_why) {
  const auto d = open(adapters_[0]);
  std::unique_ptr<gpu::kernel> made;
  EXPECT_EQ(d->make_kernel({kernel_id::count, {3}}, made, report_), BITNET_UNSUPPORTED);
  // An array without elements.
  EXPECT_EQ(d->make_kernel({kernel_id::attn_paged, {8, 1, 1, 0}}, made, report_), BITNET_INTERNAL);
  EXPECT_NE(std::strstr(error_.message, "compiling attn_paged"), nullptr) << error_.message;
}

TEST_F(webgpu_device, waiting_ends_in_time) {
  const auto d = open(adapters_[0]);
  std::unique_ptr<gpu::queue> turn;
  must(d->make_queue(turn, report_));
  EXPECT_EQ(turn->wait(1, 1000, report_), BITNET_TIMEOUT);
  EXPECT_NE(std::strstr(error_.message, "no submitted step"), nullptr) << error_.message;
}

}  // namespace
}  // namespace bitnet::webgpu
