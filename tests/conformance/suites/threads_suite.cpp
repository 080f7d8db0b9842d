// Several queues, devices and backends at once.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "bitnet/abi/answers.h"
#include "model/tiny_model.hpp"
#include "suites/program.hpp"

namespace bitnet::conformance {
namespace {

const std::vector<token_in> short_prompt = {{3}, {1}, {4}, {1}, {5}};

class threads : public models_test {};

// What was thrown in a thread, as a failure of the test.
template <class Work>
std::thread start(Work work) {
  return std::thread([work] {
    try {
      work();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  });
}

TEST_F(threads, queues_of_one_device_do_not_disturb_each_other) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  constexpr int n = 3, rounds = 8;
  std::vector<std::unique_ptr<runner>> runners;
  for (int i = 0; i < n; ++i)
    runners.push_back(std::make_unique<runner>(device_.table(), m, options()));
  runner alone(device_.table(), m, options());
  const std::vector<float> first = alone.run(short_prompt), then = alone.run({{9}});
  std::vector<std::thread> all;
  for (int i = 0; i < n; ++i)
    all.push_back(start([&, i] {
      runner& r = *runners[static_cast<std::size_t>(i)];
      EXPECT_TRUE(same_bits(r.run(short_prompt), first));
      EXPECT_TRUE(same_bits(r.run({{9}}), then));
      for (int round = 0; round < rounds; ++round) r.run({{round}, {1, 1}});
    }));
  for (std::thread& t : all) t.join();
}

TEST_F(threads, steps_of_two_queues_are_in_flight_together) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner a(device_.table(), m, options()), b(device_.table(), m, options());
  runner alone(device_.table(), m, options());
  const std::vector<float> expected = alone.run(short_prompt);
  const bitnet_step first = a.prepare(short_prompt), second = b.prepare(short_prompt);
  must([&](bitnet_error* e) { return device_.table().queue_submit(a.queue, &first, e); });
  must([&](bitnet_error* e) { return device_.table().queue_submit(b.queue, &second, e); });
  constexpr uint64_t patience_ns = 60'000'000'000;
  must([&](bitnet_error* e) { return device_.table().queue_wait(b.queue, 1, patience_ns, e); });
  must([&](bitnet_error* e) { return device_.table().queue_wait(a.queue, 1, patience_ns, e); });
  EXPECT_TRUE(same_bits(expected, {a.logits, a.logits + expected.size()}));
  EXPECT_TRUE(same_bits(expected, {b.logits, b.logits + expected.size()}));
}

TEST_F(threads, questions_are_answered_while_steps_run) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(device_.table(), m, options()), alone(device_.table(), m, options());
  const std::vector<float> expected = alone.run(short_prompt);
  std::atomic<bool> stop{false};
  const std::vector<bitnet_kernel_info> kernels = device_.kernels();
  std::vector<std::thread> all;
  for (int i = 0; i < 2; ++i)
    all.push_back(start([&] {
      while (!stop) {
        EXPECT_EQ(device_.kernels().size(), kernels.size());
        device_.info();
        device_.level(BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2);
        r.stats();
        if (device_.table().device_status != nullptr) {
          bitnet_device_status doing{};
          doing.struct_size = sizeof doing;
          must([&](bitnet_error* e) {
            return device_.table().device_status(device_.device, &doing, e);
          });
          const char* wrong = bitnet_wrong_device_status(&doing);
          if (wrong != nullptr) ADD_FAILURE() << "device_status " << wrong;
        }
        uint64_t at = 0;
        must([&](bitnet_error* e) { return device_.table().queue_poll(r.queue, &at, e); });
      }
    }));
  EXPECT_TRUE(same_bits(r.run(short_prompt), expected));
  for (int round = 0; round < 20; ++round) r.run({{round, round % 3}});
  stop = true;
  for (std::thread& t : all) t.join();
}

TEST_F(threads, the_number_of_workers_changes_no_bit) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  std::vector<float> results[3];
  const uint32_t widths[] = {1, 2, 5};
  for (int i = 0; i < 3; ++i) {
    open_how how;
    how.width = widths[i];
    opened_device d(how);
    runner_options o;
    o.opened = d.device;
    runner r(d.table(), m, o);
    results[i] = r.run(short_prompt);
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
  EXPECT_TRUE(same_bits(results[0], results[2]));
}

TEST_F(threads, backends_open_beside_each_other) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner alone(device_.table(), m, options());
  const std::vector<float> expected = alone.run(short_prompt);
  std::vector<std::thread> all;
  for (int i = 0; i < 2; ++i)
    all.push_back(start([&] {
      for (int round = 0; round < 3; ++round) {
        opened_device d;
        runner_options o;
        o.opened = d.device;
        runner r(d.table(), m, o);
        EXPECT_TRUE(same_bits(r.run(short_prompt), expected));
      }
    }));
  for (std::thread& t : all) t.join();
}

TEST_F(threads, every_device_gives_the_same_within_a_few_codes) {
  uint32_t n = 0;
  must([&](bitnet_error* e) { return device_.table().device_count(device_.table().self, &n, e); });
  if (n < 2) GTEST_SKIP() << "there is one device only";
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner here(device_.table(), m, options());
  const std::vector<float> expected = here.run(short_prompt);
  for (uint32_t i = 0; i < n; ++i) {
    runner_options o;
    o.device = i;
    runner r(device_.table(), m, o);
    EXPECT_LE(nmse(r.run(short_prompt), expected), 1e-4) << "device " << i;
  }
}

}  // namespace
}  // namespace bitnet::conformance
