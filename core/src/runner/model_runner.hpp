#pragma once
// Runs steps of many sequences on an engine: for each part a program, its step buffers and a queue,
// on pools of KV blocks. A step goes through the parts in turn: each begins with the hidden states
// that the part before gave.
//
// Owner   keeps the engine and the pools alive; pools without another owner end with it.
// Threads open() any; the rest one at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "compute/steps.hpp"
#include "engine/device_use.hpp"
#include "engine/engine.hpp"
#include "engine/kv_pools.hpp"
#include "engine/limits.hpp"
#include "schedule/step.hpp"
#include "trace/recorder.hpp"

namespace bitnet::runner {

class model_runner final : public schedule::step_runner {
 public:
  // Opens it for `max_sequences` at a time, within what limits_of() gave for `options`. Takes
  // device_mutex(), here and at its end. `cancel_token`: the plugin calls host->cancelled with it;
  // 0: nothing cancels.
  static result<std::unique_ptr<model_runner>> open(std::shared_ptr<engine::engine> e,
                                                    const engine::session_options& options,
                                                    const engine::limits& most,
                                                    uint32_t max_sequences,
                                                    std::shared_ptr<const engine::kv_pools> pools,
                                                    uint64_t cancel_token);
  ~model_runner() override;

  [[nodiscard]] const schedule::step_limits& limits() const override { return limits_; }
  [[nodiscard]] const trace::recorder* recorder() const override { return recorder_.get(); }
  [[nodiscard]] const std::shared_ptr<engine::engine>& on() const { return engine_; }
  [[nodiscard]] uint64_t block_bytes() const;  // of all layers

  result<void> copy(std::span<const uint32_t> from, std::span<const uint32_t> to) override;
  result<void> run(std::span<const schedule::slice> slices, uint32_t top_logits,
                   std::vector<generate::logits_row>& rows) override;

  // The bytes of all parts, in the layout of a whole model.
  using pool_content = schedule::pool_content;
  result<void> write_out(std::span<const uint32_t> which, pool_content what,
                         std::span<std::byte> bytes) override;
  result<void> read_in(std::span<const uint32_t> which, pool_content what,
                       std::span<const std::byte> bytes) override;
  // The form of set_form(); empty before.
  [[nodiscard]] const kv::saved_form& form() const override { return form_; }
  void set_form(kv::saved_form f) { form_ = std::move(f); }

  // What ran, from the plugin's own counters.
  [[nodiscard]] result<std::vector<engine::device_use>> ran() const;
  // Whether a step did not end within its time limit: the device may still write to all memory that
  // the step was given.
  [[nodiscard]] bool is_hung() const { return hung_; }

 private:
  model_runner(std::shared_ptr<engine::engine> e, const engine::session_options& options,
               const engine::limits& most, uint32_t max_sequences,
               std::shared_ptr<const engine::kv_pools> pools, uint64_t cancel_token);
  void leave_behind();

  // One part of the engine, with its program.
  struct part_program {
    const engine::part* on;
    // nullptr: no op of the part reads it. Shapes are those of the ports (bitnet/abi/program.h):
    // (max_tokens), but block_tables (max_sequences, max_blocks), output_rows and largest
    // (max_outputs), states (max_sequences).
    struct step_memory {
      int32_t *tokens, *positions, *sequences, *slots, *block_tables, *output_rows, *states;
      float* in;   // hidden states (max_tokens, n_embedding)
      float* out;  // the same, or of the last part logits (max_outputs, row_floats_)
      bitnet_largest* largest;
    } memory{};
    // In this order, so that each is destroyed before the one that it was made of.
    compute::program program{};
    compute::binding binding{};
    compute::queue queue{};
    // For traces of steps.
    std::string name{};                         // of the device
    std::vector<bitnet_kernel_stat> counted{};  // the device's kernel counters up to the last step
  };
  result<void> build(const engine::session_options& options, const engine::limits& most,
                     std::size_t index);
  static result<void> prepare_decoding(part_program& at, const bitnet_program_options& bounds);
  // A step with the sums over its slices.
  struct batch {
    std::span<const schedule::slice> slices;
    uint32_t n_tokens = 0, n_outputs = 0, top_logits = 0;
  };
  [[nodiscard]] result<batch> count(std::span<const schedule::slice> slices,
                                    uint32_t top_logits) const;
  void note_facts(const part_program& at, const batch& b) const;
  void note_slice(const part_program& at, const schedule::slice& s, uint32_t sequence,
                  uint32_t at_token, uint32_t& at_output) const;
  result<void> run_parts(const batch& b, std::vector<generate::logits_row>& rows);
  result<void> run_part(std::size_t index, const batch& b);
  template <class Doing>
  result<void> compute_on(part_program& at, const bitnet_step& step, const Doing& doing);
  void trace_part(part_program& at, trace::recorder::clock::time_point begin,
                  trace::recorder::clock::time_point submitted, bitnet_status status) const;
  result<void> take_rows(const part_program& at, const batch& b,
                         std::vector<generate::logits_row>& rows) const;
  result<bool> take_listed(const part_program& at, const batch& b, uint32_t output,
                           generate::logits_row& to) const;
  // `doing()` describes the step in words.
  template <class Doing>
  result<void> await(part_program& at, const Doing& doing);
  // The bytes that a part has of each block, or state, of a whole model.
  struct portion {
    std::vector<uint32_t> blocks;  // as the part's pool names them
    uint64_t offset, bytes;        // of one block or state, within the whole model's
    bool is_all;                   // the part has all of the model
  };
  template <class Begin, class End>
  result<void> for_pools(std::span<const uint32_t> which, pool_content what, uint64_t whole,
                         const char* doing, const Begin& begin, const End& end);

  const std::shared_ptr<engine::engine> engine_;
  std::shared_ptr<const engine::kv_pools> pools_;
  const uint64_t cancel_token_;
  const uint64_t step_timeout_ns_;
  const bool embeddings_;
  const uint64_t row_floats_;
  const uint32_t max_blocks_;  // of a sequence
  schedule::step_limits limits_;
  kv::saved_form form_;
  bool hung_ = false;                                // a step did not end within step_timeout_ns_
  const std::unique_ptr<trace::recorder> recorder_;  // nullptr: steps are not traced

  std::vector<part_program> part_programs_;
};

}  // namespace bitnet::runner
