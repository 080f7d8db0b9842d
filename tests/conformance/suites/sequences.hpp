#pragma once
// Random steps of many sequences on a device, with the memory that they work on.

#include <memory>
#include <string>
#include <vector>

#include "model/runner.hpp"
#include "model/traffic.hpp"
#include "reference/sequences.hpp"
#include "suites/program.hpp"

namespace bitnet::conformance {

// A runner whose steps are planned ones.
class sequences_runner : public runner {
 public:
  sequences_runner(const bitnet_backend_v0& table, const model& m, const runner_options& options,
                   uint32_t seed);

  // Writes the facts of a step. What the step may not look at names blocks of others.
  bitnet_step write(const planned_step& step) { return write(step, *this); }
  bitnet_step write(const planned_step& step, const step_memory& to);
  // Writes a step and runs it. It fails, too, where the plugin writes to the facts, which are the
  // host's.
  [[nodiscard]] outcome take(const planned_step& step);
  // All of them, those that the step does not use among them.
  [[nodiscard]] std::vector<int32_t> facts() const;
  // The copies that come before it.
  [[nodiscard]] outcome move(const planned_step& step);
  // Makes the pool hold that; bytes as contents() gives them.
  void restore(const std::vector<uint8_t>& bytes);
  // The same, and what the pool does not hold then, with the slot that is wrong; "" if it holds
  // all of it.
  std::string wrong_restore(const std::vector<uint8_t>& bytes);
  // The bytes of all blocks and all states.
  std::vector<uint8_t> contents();
  // Which byte of the pool is not as expected, in words; "" if all are. `owners` names the op.
  std::string wrong_contents(const pool_contents& expected, const pool_owners* owners = nullptr);
  // What is wrong with an export of some blocks and states, an import of them, copies between them;
  // "" if nothing. `pool` is what the pool holds, and is then as after it.
  std::string wrong_export(const pool_contents& pool, const std::vector<uint32_t>& list);
  std::string wrong_import(const pool_contents& from, const std::vector<uint32_t>& list,
                           pool_contents& pool);
  std::string wrong_copy(const std::vector<uint32_t>& list, pool_contents& pool,
                         std::mt19937& random);
  // A byte of contents() in words: its block or state, and both values.
  [[nodiscard]] std::string difference(uint64_t byte, const std::vector<uint8_t>& wanted,
                                       const std::vector<uint8_t>& found) const;
  // Of each byte of contents(), whether the step may write it.
  [[nodiscard]] std::vector<bool> written_by(const planned_step& step) const;
  // Empty, of the pool's size.
  [[nodiscard]] pool_contents room() const;

 private:
  // A block or state, among the bytes of contents().
  struct part {
    uint32_t id;
    uint64_t first, bytes;
  };

  [[nodiscard]] std::vector<uint32_t> everything() const;
  [[nodiscard]] part part_of(uint64_t byte) const;

  runner_options how_;
  uint64_t state_elements_;
  kv_layout layout_;
  std::mt19937 random_;
};

// The bounds that traffic keeps.
runner_options bounds_of(const traffic_options& t);

class sequences : public models_test {
 protected:
  // Random steps of the keys' graph against its model, bit for bit in the pool.
  void run_keys(const traffic_options& t, uint32_t dtype_k, uint32_t dtype_v, uint32_t steps,
                int32_t layer_window = 0);
  void run_states(const traffic_options& t, uint32_t steps);

 private:
  // Of a graph of reference/sequences.hpp. The options are those of the pool's types.
  template <class Graph>
  void run_graph(const Graph& g, const traffic_options& t, const runner_options& o, uint32_t steps);
};

}  // namespace bitnet::conformance
