#pragma once
// Steps as a scheduler of many sequences makes them: sequences begin, fork, grow and end; prompts
// stand beside decoded tokens. Which blocks and rows a sequence has is random. Knows no device.

#include <cstdint>
#include <random>
#include <vector>

namespace bitnet::conformance {

struct traffic_options {
  uint32_t max_tokens = 16, max_sequences = 8, max_outputs = 16, max_blocks = 8, block_tokens = 4;
  uint32_t n_blocks = 48;
  uint32_t live = 8;        // sequences that it keeps alive, where there are blocks for them
  uint32_t vocabulary = 1;  // token ids are below
  bool windows = false;     // some steps have a window
  uint32_t seed = 1;
};

// The tokens of one sequence in a step.
struct slice {
  uint64_t id = 0;     // of the sequence: counts those that ever began
  uint32_t row = 0;    // of block tables and states
  uint32_t state = 0;  // index of its state in the pool
  uint32_t first = 0;  // position of its first token here
  std::vector<int32_t> tokens;
  std::vector<uint32_t> blocks;  // of the whole sequence, in order of position
};

// Block or state `from` becomes `to` before the step runs.
struct block_move {
  uint32_t from, to;
};

struct planned_step {
  std::vector<block_move> blocks, states;
  std::vector<slice> slices;
  std::vector<uint32_t> output_rows;  // rows of the step's tokens: any order, some twice
  uint32_t n_sequences = 0;
  uint32_t window = 0, window_keep = 0;

  [[nodiscard]] uint32_t n_tokens() const;
};

class traffic {
 public:
  explicit traffic(const traffic_options& options);

  // The next step. Sequences are then as if it had run.
  planned_step next();
  // All tokens of a sequence that ever was, those that it has from where it forked among them.
  [[nodiscard]] const std::vector<int32_t>& history(uint64_t id) const { return histories_[id]; }
  [[nodiscard]] uint64_t begun() const { return histories_.size(); }

 private:
  struct sequence {
    uint64_t id = 0;
    uint32_t length = 0, state = 0;
    std::vector<uint32_t> blocks;
  };

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  [[nodiscard]] uint32_t most_tokens() const { return options_.max_blocks * options_.block_tokens; }
  uint32_t take_block();
  void end_some();
  void begin_some(planned_step& to);
  void fork(const sequence& parent, sequence& child, planned_step& to);
  uint32_t grow(sequence& s, uint32_t wanted, slice& to);
  void choose_outputs(planned_step& to);

  traffic_options options_;
  std::mt19937 random_;
  std::vector<sequence> live_;
  std::vector<uint32_t> owners_;  // of each block
  std::vector<uint32_t> free_blocks_, free_states_;
  std::vector<std::vector<int32_t>> histories_;  // by id
};

}  // namespace bitnet::conformance
