// Several queues, devices and backends at once.

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
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

// Steps of one sequence on a queue and a binding of their own. Steps of two that run at
// once differ in tokens, in their number and in positions.
class solo {
 public:
  static constexpr uint64_t steps = 96;

  // `row` of the block tables and `first_block` of the pool are its own.
  solo(const bitnet_backend_v0& table, bitnet_queue* queue, const step_memory& memory, int32_t row,
       int32_t first_block)
      : table_(table),
        queue_(queue),
        memory_(memory),
        row_(row),
        first_block_(first_block),
        tokens_(static_cast<std::size_t>(1 + 2 * row)) {}

  // The logits of each token of the prompt, again and again from position 0 on. Two that meet begin
  // half of their steps together; the others overlap in any way.
  std::vector<float> run(uint64_t vocab, std::barrier<>* meeting = nullptr) {
    std::vector<float> out;
    const std::size_t of_a_round = prompt.size() / tokens_;
    for (uint64_t n = 0; n < steps; ++n) {
      if (meeting != nullptr && n < steps / 2) meeting->arrive_and_wait();
      step(n % of_a_round * tokens_);
      out.insert(out.end(), memory_.logits, memory_.logits + tokens_ * vocab);
    }
    return out;
  }

 private:
  void step(std::size_t first) {
    constexpr int32_t block_tokens = 4, max_blocks = 8;
    for (int32_t b = 0; b < max_blocks; ++b)
      memory_.block_tables[row_ * max_blocks + b] = first_block_ + b;
    for (std::size_t t = 0; t < tokens_; ++t) {
      const auto at = static_cast<int32_t>(first + t);
      memory_.tokens[t] = (prompt[first + t] + row_) % 16;
      memory_.positions[t] = at;
      memory_.sequences[t] = row_;
      memory_.slots[t] = (first_block_ + at / block_tokens) * block_tokens + at % block_tokens;
      memory_.output_rows[t] = static_cast<int32_t>(t);
    }
    bitnet_step s{};
    s.struct_size = sizeof s;
    s.n_tokens = s.n_outputs = static_cast<uint32_t>(tokens_);
    s.n_sequences = static_cast<uint32_t>(row_) + 1;
    s.binding = memory_.binding;
    s.signal_value = ++signal_;
    must([&](bitnet_error* e) { return table_.queue_submit(queue_, &s, e); });
    must([&](bitnet_error* e) {
      return table_.queue_wait(queue_, s.signal_value, 60'000'000'000u, e);
    });
  }

  const bitnet_backend_v0& table_;
  bitnet_queue* queue_;
  step_memory memory_;
  int32_t row_, first_block_;
  std::size_t tokens_;  // of a step
  uint64_t signal_ = 0;
};

// A queue more of a device.
class own_queue {
 public:
  own_queue(const bitnet_backend_v0& table, bitnet_device* device) : table_(table) {
    must([&](bitnet_error* e) { return create_queue(table, device, &queue, e); });
  }
  ~own_queue() { table_.queue_destroy(queue); }
  own_queue(const own_queue&) = delete;
  own_queue& operator=(const own_queue&) = delete;

  bitnet_queue* queue = nullptr;

 private:
  const bitnet_backend_v0& table_;
};

// Runs both alone, then at once; whether they then give what they gave alone. `slot` made what they
// must not share.
void run_beside(const char* slot, solo& a, solo& b, uint64_t vocab) {
  const std::vector<float> one = a.run(vocab), other = b.run(vocab);
  std::vector<float> found[2];
  std::barrier<> both(2);
  const auto beside = [&](solo& who, std::vector<float>& to) {
    return start([&] {
      struct leaving {  // also where a step throws: the other must not wait
        std::barrier<>& from;
        ~leaving() { from.arrive_and_drop(); }
      } const end{both};
      to = who.run(vocab, &both);
    });
  };
  std::thread first = beside(a, found[0]), second = beside(b, found[1]);
  first.join();
  second.join();
  EXPECT_TRUE(same_bits(found[0], one)) << slot << ": the first, beside the second";
  EXPECT_TRUE(same_bits(found[1], other)) << slot << ": the second, beside the first";
}

TEST_F(threads, two_bindings_of_a_program_are_used_by_two_threads) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(device_.table(), m, options());
  const step_memory second = r.bind();
  const own_queue one(device_.table(), device_.device), other(device_.table(), device_.device);
  solo a(device_.table(), one.queue, r, 0, 3), b(device_.table(), other.queue, second, 1, 17);
  run_beside("program_bind", a, b, m.vocabulary());
}

TEST_F(threads, two_programs_of_a_device_are_used_by_two_threads) {
  const tiny_model m({}), n({.seed = 2});
  need(m);
  if (IsSkipped()) return;
  runner r(device_.table(), m, options()), s(device_.table(), n, options());
  const own_queue one(device_.table(), device_.device), other(device_.table(), device_.device);
  solo a(device_.table(), one.queue, r, 0, 3), b(device_.table(), other.queue, s, 1, 17);
  run_beside("program_build", a, b, m.vocabulary());
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
    EXPECT_LE(nmse(r.run(short_prompt), expected), few_codes) << "device " << i;
  }
}

}  // namespace
}  // namespace bitnet::conformance
