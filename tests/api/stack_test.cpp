// A thread of 128 KB of stack is enough: for the one that calls, and for those of the pool.

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "demo_session.hpp"

namespace {

using bitnet::test::blank_error;
using bitnet::test::demo_session;

constexpr std::size_t stack_bytes = std::size_t{128} << 10;
// Behind the stack, so that nothing steps over it.
constexpr std::size_t guard_bytes = std::size_t{4} << 20;

// Runs `work` in a thread of such a stack; those that it starts have the same.
void on_small_stack(const std::function<void()>& work) {
  pthread_attr_t before, small;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, stack_bytes + guard_bytes), 0);
  ASSERT_EQ(pthread_attr_setguardsize(&small, guard_bytes), 0);  // taken off the stack's size
  ASSERT_EQ(pthread_setattr_default_np(&small), 0);
  pthread_t thread{};
  auto task = work;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* arg) -> void* {
                  (*static_cast<std::function<void()>*>(arg))();
                  return nullptr;
                },
                &task),
            0);
  pthread_join(thread, nullptr);
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&small);
}

// Of every instruction set that this machine has: prompts by panels and tables, tokens, the head.
TEST(stack, of_128_kb_is_enough_for_a_session) {
  bitnet_status opened = BITNET_OK;
  on_small_stack([&] { opened = demo_session().open(); });
  if (opened == BITNET_NOT_FOUND || opened == BITNET_UNAVAILABLE)
    GTEST_SKIP() << "no demo model or no backend";
  int ran = 0;
  for (const char* isa : {"", "scalar", "sse41", "avx2", "avxvnni", "avx512", "avx512vnni", "amx",
                          "neon", "neon-dotprod", "neon-i8mm"})
    for (const uint32_t n_threads : {1U, 2U})
      on_small_stack([&] {
        demo_session d;
        const std::string param = std::string("cpu.isa=") + isa;
        const bitnet_status s = d.open(n_threads, *isa == '\0' ? nullptr : param.c_str());
        if (s == BITNET_UNAVAILABLE) return;  // not of this machine
        ASSERT_EQ(s, BITNET_OK) << isa << ": " << d.error.message;
        ++ran;
        EXPECT_EQ(d.generate(4, 200), BITNET_OK) << isa << ": " << d.error.message;
      });
  EXPECT_GE(ran, 4) << "each machine has the usual one and the scalar one";
}

TEST(stack, of_128_kb_is_enough_for_each_product) {
  on_small_stack([] {
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.device = "cpu";
    options.n_threads = 2;
    bitnet_runtime* runtime = nullptr;
    ASSERT_EQ(bitnet_runtime_open(&options, &runtime, nullptr), BITNET_OK);
    struct product {
      uint32_t op, format;
      uint64_t group;
    };
    std::vector<product> products;
    for (const uint64_t group : {0U, 32U, 64U, 128U, 256U})
      products.push_back({BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, group});
    for (const uint32_t format :
         {BITNET_FORMAT_F32, BITNET_FORMAT_F16, BITNET_FORMAT_BF16, BITNET_FORMAT_Q8_0,
          BITNET_FORMAT_Q4_0, BITNET_FORMAT_Q4_K, BITNET_FORMAT_Q6_K})
      products.push_back({BITNET_OP_LINEAR_DENSE, format, 0});
    int ran = 0;
    for (const product& p : products)
      for (const uint32_t tokens : {1U, 12U, 40U, 130U}) {
        bitnet_trial_options o;
        bitnet_trial_defaults(&o, sizeof o);
        o.op = p.op;
        o.format = p.format;
        o.scale_group = p.group;
        o.n_rows = 1280;
        o.n_inputs = 5120;
        o.n_tokens = tokens;
        bitnet_trial* trial = nullptr;
        bitnet_error e = blank_error();
        const bitnet_status s = bitnet_trial_open(runtime, &o, &trial, &e);
        if (s == BITNET_UNSUPPORTED || s == BITNET_UNAVAILABLE) continue;
        EXPECT_EQ(s, BITNET_OK) << e.message;
        ++ran;
        bitnet_trial_result r{};
        r.struct_size = sizeof r;
        for (int i = 0; i < 6; ++i)  // each of the ways that are timed against each other
          EXPECT_EQ(bitnet_trial_run(trial, &r, &e), BITNET_OK) << e.message;
        bitnet_trial_close(trial);
      }
    EXPECT_GT(ran, 0);
    bitnet_runtime_close(runtime);
  });
}

}  // namespace
