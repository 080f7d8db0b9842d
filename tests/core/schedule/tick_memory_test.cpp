// A tick allocates nothing where nothing changes. Also prints what one takes of the host, for
// docs/adr/0054: of real time, on a device that computes nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <new>

#include "small_world.hpp"

namespace {

std::atomic<std::size_t> n_news{0};

void* counted(std::size_t size) {
  ++n_news;
  void* const out = std::malloc(size);
  if (out == nullptr) throw std::bad_alloc();
  return out;
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

class forgetful final : public sink {
 public:
  bool offer(event&&) override { return true; }
};

TEST(tick_memory, decodes_allocate_nothing_but_for_tokens_that_grow) {
  step_limits most = small_limits();
  most.max_tokens = 512;
  most.max_sequences = most.max_outputs = 32;
  most.n_context = 2048;
  most.n_blocks = 2000;
  world w(most);
  w.runner->does_nothing = true;
  for (uint32_t i = 0; i < 40; ++i) {  // 8 wait
    request r = world::ask(some_tokens(30, i), 1500);
    r.client = i % 3;
    r.events = std::make_shared<forgetful>();
    ASSERT_TRUE(w.engine->submit(std::move(r)));
  }
  for (int i = 0; i < 300; ++i) w.engine->tick();
  ASSERT_EQ(w.engine->counted().running, 32U);
  const std::size_t before = n_news;
  for (int i = 0; i < 200; ++i) w.engine->tick();
  // 200 ticks gave 6400 tokens; vectors of 330 tokens are made larger at most once by then.
  EXPECT_LE(n_news - before, 4 * 32U);
  constexpr int n_ticks = 800;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < n_ticks; ++i) w.engine->tick();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(w.engine->counted().running, 32U);
  std::cout << "a tick of 32 sequences: " << took.count() / n_ticks << " us\n";
}

}  // namespace
}  // namespace bitnet::schedule
