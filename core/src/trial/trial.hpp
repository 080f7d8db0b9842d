#pragma once
// Measures one matrix product on a device: a minimal program around it, with random weights. It
// works for any backend.
//
// Threads one at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "compute/steps.hpp"
#include "select/selection.hpp"

namespace bitnet::trial {

struct trial_options {
  uint32_t op = 0;           // BITNET_OP_LINEAR_TERNARY or _DENSE
  uint32_t format = 0;       // BITNET_FORMAT_* of the weights
  uint64_t rows = 0;         // M
  uint64_t inputs = 0;       // K
  uint64_t scale_group = 0;  // inputs per scale of ternary weights; 0: one scale per matrix
  uint32_t n_tokens = 1;
  uint32_t n_matrices = 1;
};

class trial {
 public:
  static result<std::unique_ptr<trial>> open(select::choice choice, const trial_options& options);
  ~trial();
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;

  // Counters of the op's kernel for one step, from the backend.
  struct measured {
    bitnet_kernel_stat kernel{};
    uint64_t step_ns = 0;  // from submission to the fence
  };
  // Multiplies the tokens with every matrix once.
  result<measured> run();

 private:
  trial(select::choice choice, const trial_options& options);
  void describe_graph();
  void describe_weights();
  result<void> open_device();
  result<void> upload();
  result<void> compile();
  void fill_facts();
  [[nodiscard]] bitnet_program_options bounds() const;
  result<bitnet_kernel_stat> counted() const;

  const select::choice choice_;
  const trial_options options_;
  compute::graph graph_;
  std::vector<bitnet_tensor_desc> weights_wanted_;  // the embedding, then the matrices
  std::vector<float> scales_;                       // the same for each matrix
  // In this order: each is destroyed before the objects that it was made from.
  compute::device device_;
  compute::weights weights_;
  compute::program program_;
  compute::binding binding_;
  compute::queue queue_;
};

}  // namespace bitnet::trial
