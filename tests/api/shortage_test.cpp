// What the system does not give: each thread that libbitnet asks for, and each large piece of
// memory, is missing once, alone and with all behind it. Every call then returns, with a sentence
// or with what it was asked for.
//
// pthread_create and operator new are this program's, in front of the system's.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "demo_session.hpp"

namespace {

// Of what is asked for since the last start(): number `from` and the next `many` are refused.
struct shortage {
  std::atomic<int64_t> asked{0}, from{INT64_MAX}, many{0};

  void start(int64_t first, int64_t n) {
    asked = 0;
    many = n;
    from = first;
  }
  void stop() { from = INT64_MAX; }
  bool refuses() {
    const int64_t mine = asked.fetch_add(1), first = from.load();
    return mine >= first && mine - first < many.load();
  }
};
shortage threads, memory;

// Bytes. Smaller pieces are given: the standard library and the destructor of nlohmann::json ask
// for some where no exception can leave, and the process ends.
constexpr std::size_t refusable = 16384;

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*),
                              void* arg) {
  using create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<create>(dlsym(RTLD_NEXT, "pthread_create"));
  return threads.refuses() ? EAGAIN : real(thread, how, run, arg);
}

void* operator new(std::size_t bytes) {
  void* out =
      bytes >= refusable && memory.refuses() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (out == nullptr) throw std::bad_alloc();
  return out;
}
void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}

namespace {

using bitnet::test::demo_session;

// A whole life. Nothing is kept of it but what it came to.
struct life {
  bitnet_status status = BITNET_OK;
  std::string message;
  std::size_t tokens = 0;
};

life live(uint32_t n_threads) {
  demo_session d;
  std::vector<bitnet_token> out;
  life all;
  all.status = d.open(n_threads);
  if (all.status == BITNET_OK) all.status = d.generate(3, 40, nullptr, nullptr, &out);
  all.tokens = out.size();
  all.message = d.error.message;
  return all;
}

#define SKIP_WITHOUT_MODEL(what)                                                \
  if ((what).status == BITNET_NOT_FOUND || (what).status == BITNET_UNAVAILABLE) \
  GTEST_SKIP() << "no demo model or no backend: " << (what).message

TEST(shortage, of_threads_ends_in_a_sentence_or_in_fewer) {
  for (const uint32_t n_threads : {0U, 4U}) {
    threads.start(INT64_MAX, 0);
    const life whole = live(n_threads);
    SKIP_WITHOUT_MODEL(whole);
    ASSERT_EQ(whole.status, BITNET_OK) << whole.message;
    const int64_t all = threads.asked;
    EXPECT_GE(all, n_threads == 0 ? 0 : 3);
    for (int64_t k = 0; k < all; ++k)
      for (const int64_t many : {int64_t{1}, INT64_MAX}) {
        SCOPED_TRACE("thread " + std::to_string(k) + " of " + std::to_string(all) + ", " +
                     (many == 1 ? "alone" : "and all behind it"));
        threads.start(k, many);
        const life short_of = live(n_threads);
        threads.stop();
        if (short_of.status == BITNET_OK) {
          EXPECT_EQ(short_of.tokens, 3U);
          continue;
        }
        EXPECT_NE(short_of.message.find("the system makes no further thread"), std::string::npos)
            << short_of.message;
        EXPECT_NE(short_of.message.find("Resource temporarily unavailable"), std::string::npos)
            << short_of.message;
      }
  }
}

TEST(shortage, of_threads_is_reported_where_their_number_was_left_open) {
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  bitnet_runtime* runtime = nullptr;
  bitnet_error e = bitnet::test::blank_error();
  std::string log;
  options.log_user = &log;
  options.log = [](void* to, uint32_t, const char* line) {
    static_cast<std::string*>(to)->append(line);
  };
  threads.start(0, INT64_MAX);
  const bitnet_status open = bitnet_runtime_open(&options, &runtime, &e);
  const bool asked = threads.asked != 0;
  threads.stop();
  ASSERT_EQ(open, BITNET_OK) << e.message;
  uint64_t needed = 0;
  EXPECT_EQ(bitnet_runtime_report(runtime, nullptr, 0, &needed, nullptr), BITNET_OK);
  std::string report(needed, ' ');
  EXPECT_EQ(bitnet_runtime_report(runtime, report.data(), needed, &needed, nullptr), BITNET_OK);
  bitnet_runtime_close(runtime);
  if (!asked) GTEST_SKIP() << "one thread is of use on this machine";
  EXPECT_NE(report.find("\"threads\":{\"count\":1,"), std::string::npos) << report;
  EXPECT_NE(report.find("\"wanted\":"), std::string::npos) << report;
  EXPECT_NE(log.find("the system makes no further thread"), std::string::npos) << log;
}

TEST(shortage, of_memory_is_a_status) {
  const life first = live(2);  // what is made once is there
  SKIP_WITHOUT_MODEL(first);
  memory.start(INT64_MAX, 0);
  const life whole = live(2);
  ASSERT_EQ(whole.status, BITNET_OK) << whole.message;
  const int64_t all = memory.asked;
  EXPECT_GE(all, 10);
  for (int64_t k = 0; k < all; ++k)
    for (const int64_t many : {int64_t{1}, INT64_MAX}) {
      SCOPED_TRACE("piece " + std::to_string(k) + " of " + std::to_string(all) + ", " +
                   (many == 1 ? "alone" : "and all behind it"));
      memory.start(k, many);
      const life short_of = live(2);
      memory.stop();
      // What can be done without is: a note that is not kept, a plugin that is left out.
      if (short_of.status == BITNET_OK) continue;
      EXPECT_TRUE(short_of.status == BITNET_OUT_OF_MEMORY || short_of.status == BITNET_UNAVAILABLE)
          << short_of.status << ": " << short_of.message;
      EXPECT_NE(short_of.message, "");
    }
}

}  // namespace
