#pragma once
// The op list of a model, cut behind one of its ops and run on an engine, to read the values there.
//
// Owner   a cut_runner keeps its engine alive.
// Threads one at a time. open(), run() and the end take device_mutex().

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "compute/graph/graph.hpp"
#include "compute/steps.hpp"
#include "engine/engine.hpp"
#include "engine/kv_pools.hpp"
#include "engine/limits.hpp"
#include "engine/program_ops.hpp"

namespace bitnet::shadow {

// Ops that are compared as one: a primitive, or a composite with its body. Indices in the list.
struct op_range {
  std::size_t first = 0, last = 0;  // both included
};

// A composite counts as one op if either engine has a kernel for it; else its body is compared.
[[nodiscard]] std::vector<op_range> common_ops(const compute::graph& g,
                                               std::span<const engine::program_op> one,
                                               std::span<const engine::program_op> other);

// The list up to an op, with ports for the values that are compared: those that the op writes, and
// those that earlier ops wrote and later ones read. So a difference stays visible until an op reads
// it.
struct cut_program {
  compute::graph graph;
  std::vector<uint32_t> values;     // of the graph; each has a port
  std::vector<uint32_t> kv_layers;  // as KV_WRITE counts them: attention behind the cut reads them
  bool shows_op = false;            // whether the op writes any of these
};

// Without `quantised` int8 values and their scales are left out: the values made from them are
// compared.
[[nodiscard]] cut_program cut_behind(const compute::graph& whole, const op_range& at,
                                     bool quantised);

// The elements of a value, or of the keys and values of a layer.
struct contents {
  uint32_t dtype = BITNET_DTYPE_F32;
  std::vector<std::byte> bytes;
};

class cut_runner {
 public:
  // For runs of up to `n_tokens`, with the default options of a session. The engine has one part.
  static result<std::unique_ptr<cut_runner>> open(std::shared_ptr<engine::engine> e,
                                                  std::size_t n_tokens);
  ~cut_runner();
  cut_runner(const cut_runner&) = delete;
  cut_runner& operator=(const cut_runner&) = delete;

  [[nodiscard]] const compute::graph& whole() const { return whole_; }
  [[nodiscard]] const std::vector<engine::program_op>& ops() const { return ops_; }

  // Computes `steps` one after the other, from an empty KV. Returns, in the order of the program,
  // the values after the last step, and the keys and values of all tokens. BITNET_UNSUPPORTED: the
  // device cannot read values there.
  result<std::vector<contents>> run(const cut_program& at,
                                    std::span<const std::span<const int32_t>> steps);

 private:
  explicit cut_runner(std::shared_ptr<engine::engine> e) : engine_(std::move(e)) {}
  result<void> prepare(std::size_t n_tokens);
  [[nodiscard]] const engine::part& on() const { return engine_->main(); }
  struct built {
    compute::program program;
    compute::binding binding;
    compute::queue queue;  // declared last, so that it is destroyed first
  };
  result<built> build(const cut_program& at);
  void note_facts(const compute::binding& to, std::span<const int32_t> tokens,
                  std::size_t first) const;
  result<void> compute(built& with, std::span<const int32_t> tokens, std::size_t first);
  result<void> await(built& with);
  [[nodiscard]] uint32_t n_outputs(std::size_t n_tokens) const;
  [[nodiscard]] std::vector<contents> read_values(const cut_program& at, const built& from,
                                                  std::size_t n_tokens) const;
  result<void> read_kv(const cut_program& at, built& from, std::size_t n_tokens,
                       std::vector<contents>& to);
  void leave_behind(built with);

  std::shared_ptr<engine::engine> engine_;
  engine::session_options options_{};
  engine::limits limits_{};
  std::shared_ptr<const engine::kv_pools> pools_;
  compute::graph whole_;
  std::vector<engine::program_op> ops_;
};

}  // namespace bitnet::shadow
