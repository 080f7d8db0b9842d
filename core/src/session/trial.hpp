#pragma once
// One matrix product alone on a device, to be measured: the smallest program around it, with random
// weights. What the backend does with it is its own affair, so this works for any backend.
//
// Threads one at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "program/graph.hpp"
#include "select/selection.hpp"
#include "session/engine.hpp"

namespace bitnet::session {

struct trial_options {
  uint32_t op = 0;           // BITNET_OP_LINEAR_TERNARY or _DENSE
  uint32_t format = 0;       // BITNET_FORMAT_* of the weights
  uint64_t rows = 0;         // M
  uint64_t inputs = 0;       // K
  uint64_t scale_group = 0;  // inputs that share a scale of ternary weights; 0: all of a matrix
  uint32_t n_tokens = 1;
  uint32_t n_matrices = 1;
};

class trial {
 public:
  static result<std::unique_ptr<trial>> open(select::choice choice, const trial_options& options);
  ~trial();
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;

  // What the kernel of the op did in one step, as the backend counted it.
  struct measured {
    bitnet_kernel_stat kernel{};
    uint64_t step_ns = 0;  // from submission to the fence
  };
  // Multiplies the tokens with every matrix once.
  result<measured> run();

 private:
  trial(select::choice choice, const trial_options& options);
  [[nodiscard]] const bitnet_backend_v0& table() const { return choice_.backend->table(); }
  void describe_graph();
  void describe_weights();
  result<void> check_support() const;
  result<void> upload();
  result<void> compile();
  result<void> bind();
  result<void> make_queue();
  result<bitnet_kernel_stat> counted() const;

  const select::choice choice_;
  const trial_options options_;
  program::graph graph_;
  std::vector<bitnet_tensor_desc> weights_wanted_;  // the embedding, then the matrices
  std::vector<float> scales_;                       // of each matrix the same
  uint64_t timeline_ = 0;
  // In this order: each goes before what it was made of.
  handle<bitnet_device> device_;
  handle<bitnet_weights> weights_;
  std::vector<handle<bitnet_buffer>> buffers_;
  handle<bitnet_kv_pool> pool_;
  handle<bitnet_program> program_;
  handle<bitnet_queue> queue_;
};

}  // namespace bitnet::session
