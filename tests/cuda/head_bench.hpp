#pragma once
// The kernels of the two-stage head and those of the full one, on the driver of this folder: one
// step of some output rows, as gpu-common plans it.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bitnet/abi/program.h"
#include "cuda_platform.hpp"
#include "gpu-common/kernels.hpp"

namespace bitnet::cuda::test {

using gpu::kernel_id;

// A matrix (m, k) in the bytes of its format, rows in whole words.
struct matrix {
  uint32_t format;
  uint64_t k, m;
  std::vector<uint8_t> data;
};

// What a step leaves, of all output rows together.
struct step_result {
  std::vector<float> largest, full;  // (outputs, m)
  std::vector<float> bounds;         // (outputs, 2, m)
};

class head_bench {
 public:
  head_bench(gpu::device& device, const matrix& of, uint32_t most_outputs)
      : device_(device), of_(of), most_(most_outputs) {
    error_.struct_size = sizeof error_;
    const uint64_t row = gpu::row_words(of.format, of.k), stride = gpu::i8_row_words(of.k);
    const auto add = [&](std::unique_ptr<gpu::buffer>& to, uint64_t words) {
      must(device_.allocate(4 * (words + guard), gpu::memory_place::device, to, report_));
      const std::vector<uint32_t> unset(words + guard, canary);
      must(device_.upload(*to, 0, unset.data(), 4 * unset.size(), report_));
    };
    add(header_, 16);
    add(x_, most_ * of.k);
    add(matrix_, row * of.m);
    add(codes_, stride * of.m);
    add(norms_, 3 * of.m);
    add(states_, most_ * gpu::head_state_words(of.k));
    add(counts_, most_ * gpu::head_count_words);
    add(bounds_, most_ * 2 * of.m);
    add(largest_, most_ * of.m);
    add(found_, most_ * 2 * of.m);
    add(lists_, most_ * sizeof(bitnet_largest) / 4);
    add(full_, most_ * of.m);
    must(device_.upload(*matrix_, 0, of.data.data(), of.data.size(), report_));
    must(device_.make_queue(queue_, report_));
    const auto m = static_cast<uint32_t>(of.m), k = static_cast<uint32_t>(of.k);
    const auto words = static_cast<uint32_t>(row);
    std::vector<gpu::command> copy;
    push(copy, {kernel_id::head_copy, {128, 32, 0, of.format}},
         {&codes_, &matrix_, &codes_, &norms_}, gpu::head_copy_params{k, m, words}, (m + 3) / 4, 1);
    submit(copy);
    record_step(k, m, words);
  }

  // x (outputs, k)
  step_result run(const std::vector<float>& x, uint32_t outputs, uint32_t top,
                  bool listed = false) {
    const uint32_t header[] = {1, outputs, 0, 0, top, listed ? 1u : 0u};
    must(device_.upload(*header_, 0, header, sizeof header, report_));
    must(device_.upload(*x_, 0, x.data(), 4 * x.size(), report_));
    const std::vector<uint32_t> unset(most_ * of_.m, canary);
    for (auto* y : {&largest_, &full_})
      must(device_.upload(**y, 0, unset.data(), 4 * unset.size(), report_));
    lists.assign(outputs, {});
    for (bitnet_largest& row : lists) row.count = BITNET_NONE;
    must(device_.upload(*lists_, 0, lists.data(), outputs * sizeof(bitnet_largest), report_));
    go(*recording_);
    must(device_.download(*lists_, 0, lists.data(), outputs * sizeof(bitnet_largest), report_));
    step_result out{read(largest_, outputs * of_.m), read(full_, outputs * of_.m),
                    read(bounds_, outputs * 2 * of_.m)};
    for (const auto* b :
         {&header_, &codes_, &norms_, &states_, &counts_, &bounds_, &largest_, &found_, &lists_})
      check_guard(**b);
    return out;
  }
  std::vector<bitnet_largest> lists;  // of the last run, (outputs)
  // Ids and logits as they were found, (outputs, m, 2).
  std::vector<float> found(uint32_t outputs) { return read(found_, uint64_t{outputs} * 2 * of_.m); }
  std::vector<float> norms() { return read(norms_, 3 * of_.m); }
  std::vector<int8_t> codes() {
    std::vector<int8_t> out(4 * gpu::i8_row_words(of_.k) * of_.m);
    must(device_.download(*codes_, 0, out.data(), out.size(), report_));
    return out;
  }

 private:
  static constexpr uint64_t guard = 16;  // words behind each buffer
  static constexpr uint32_t canary = 0xcdcdcdcdu;
  using buffers = std::vector<std::unique_ptr<gpu::buffer>*>;

  void must(bitnet_status s) const {
    if (s != BITNET_OK) throw std::runtime_error(error_.message);
  }
  std::vector<float> read(const std::unique_ptr<gpu::buffer>& from, uint64_t n) {
    std::vector<float> out(n);
    must(device_.download(*from, 0, out.data(), 4 * n, report_));
    return out;
  }
  void check_guard(const gpu::buffer& b) {
    uint32_t behind[guard];
    must(device_.download(b, b.size() - sizeof behind, behind, sizeof behind, report_));
    for (const uint32_t word : behind) ASSERT_EQ(word, canary) << "written past the end";
  }
  template <class Params>
  void push(std::vector<gpu::command>& to, const gpu::kernel_spec& spec, const buffers& bound,
            const Params& params, uint32_t groups_x, uint32_t groups_y) {
    must(device_.make_kernel(spec, kernels_.emplace_back(), report_));
    gpu::command c;
    c.run = kernels_.back().get();
    for (const auto* b : bound) c.bindings.push_back({b->get(), 0, (*b)->size()});
    c.params.resize(sizeof params / 4);
    std::memcpy(c.params.data(), &params, sizeof params);
    c.groups_x = groups_x;
    c.groups_y = groups_y;
    c.after = true;
    to.push_back(std::move(c));
  }
  void record_step(uint32_t k, uint32_t m, uint32_t words) {
    constexpr uint32_t rows = gpu::rows_are_outputs;
    const uint32_t together = std::min(most_, 4u), units = (m + 127) / 128;
    std::vector<gpu::command> step;
    push(step, {kernel_id::head_state, {128}}, {&header_, &x_, &states_, &counts_},
         gpu::head_state_params{rows, k}, 1, most_);
    push(step, {kernel_id::head_approximate, {128, 32, together}},
         {&header_, &codes_, &norms_, &states_, &counts_, &bounds_},
         gpu::head_approximate_params{rows, k, m}, units, most_);
    push(step, {kernel_id::head_count, {128}}, {&header_, &bounds_, &counts_},
         gpu::head_count_params{rows, m}, units, most_);
    push(step, {kernel_id::head_exact, {128, 32, 0, of_.format}},
         {&header_, &x_, &matrix_, &bounds_, &counts_, &largest_, &found_, &lists_},
         gpu::head_exact_params{rows, k, m, words}, units, most_);
    push(step, {kernel_id::linear_dense, {128, 32, together, of_.format}},
         {&header_, &x_, &matrix_, &full_}, gpu::linear_dense_params{rows, k, m, words, 0, m},
         (m + 3) / 4, (most_ + 3) / 4);
    must(device_.record(step, false, recording_, report_));
  }
  void submit(const std::vector<gpu::command>& commands) {
    std::unique_ptr<gpu::recording> once;
    must(device_.record(commands, false, once, report_));
    go(*once);
  }
  void go(gpu::recording& what) {
    must(queue_->submit(what, ++value_, report_));
    must(queue_->wait(value_, UINT64_MAX, report_));
  }

  gpu::device& device_;
  const matrix& of_;
  const uint32_t most_;
  bitnet_error error_{};
  sdk::reporter report_{&error_, "test"};
  std::unique_ptr<gpu::buffer> header_, x_, matrix_, codes_, norms_, states_, counts_, bounds_,
      largest_, full_, found_, lists_;
  std::vector<std::unique_ptr<gpu::kernel>> kernels_;
  std::unique_ptr<gpu::recording> recording_;
  std::unique_ptr<gpu::queue> queue_;
  uint64_t value_ = 0;
};

}  // namespace bitnet::cuda::test
