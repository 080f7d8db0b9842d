#pragma once
// A model on a backend: weights loaded, program bound, steps with their block tables.

#include <memory>

#include "host.hpp"
#include "tiny_model.hpp"

namespace bitnet::parity {

struct runner_options {
  uint32_t max_tokens = 16, max_sequences = 3, max_outputs = 16, max_blocks = 8, block_tokens = 4;
  uint32_t n_blocks = 30;
  uint32_t dtype_k = BITNET_DTYPE_F16, dtype_v = BITNET_DTYPE_F16;
  uint32_t window = 0, window_keep = 0;
  uint32_t flags = BITNET_PROGRAM_DETERMINISTIC;
  bool alias = false;
};

struct token_in {
  int32_t token;
  int32_t sequence = 0;
};

class runner {
 public:
  runner(const bitnet_backend_v0& table, const tiny_model& model,
         const runner_options& options = {})
      : table_(table), options_(options), vocab_(static_cast<uint64_t>(model.shape().vocab)) {
    must([&](bitnet_error* e) { return table.device_open(table.self, 0, &device_, e); });
    load(model);
    build(model);
    bitnet_kv_config kv{};
    kv.struct_size = sizeof kv;
    kv.dtype_k = options.dtype_k;
    kv.dtype_v = options.dtype_v;
    kv.n_layers = static_cast<uint32_t>(model.shape().layers);
    kv.n_kv_heads = static_cast<uint32_t>(model.shape().kv_heads);
    kv.head_dim = static_cast<uint32_t>(model.shape().head_dim);
    kv.block_tokens = options.block_tokens;
    kv.n_blocks = options.n_blocks;
    const auto head_bytes = [&](uint32_t dtype) {
      return dtype == BITNET_DTYPE_Q8_0 ? kv.head_dim / 32 * 34
                                        : kv.head_dim * (dtype == BITNET_DTYPE_F16 ? 2 : 4);
    };
    block_bytes = uint64_t{head_bytes(kv.dtype_k) + head_bytes(kv.dtype_v)} * kv.n_layers *
                  kv.n_kv_heads * kv.block_tokens;
    must([&](bitnet_error* e) { return table.kv_pool_create(device_, &kv, &pool, e); });
    must([&](bitnet_error* e) { return table.queue_create(device_, &queue, e); });
    // Blocks of a sequence lie scattered, as after a long session.
    for (uint32_t s = 0; s < options.max_sequences; ++s)
      for (uint32_t b = 0; b < options.max_blocks; ++b)
        block_tables[s * options.max_blocks + b] =
            static_cast<int32_t>((7 * (s * options.max_blocks + b) + 3) % options.n_blocks);
    lengths_.assign(options.max_sequences, 0);
  }
  ~runner() {
    table_.queue_destroy(queue);
    table_.kv_pool_destroy(pool);
    table_.program_destroy(program);
    for (bitnet_buffer* b : buffers_) table_.buffer_destroy(b);
    table_.weights_destroy(weights_);
    table_.device_close(device_);
  }
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;

  // Writes the next tokens of their sequences into the step buffers; every one wants logits.
  bitnet_step prepare(const std::vector<token_in>& in) {
    bitnet_step step{};
    step.struct_size = sizeof step;
    step.n_tokens = static_cast<uint32_t>(in.size());
    step.n_outputs = step.n_tokens;
    step.n_sequences = options_.max_sequences;
    step.program = program;
    step.kv_pool = pool;
    step.cancel_token = 1;
    step.signal_value = ++signal_;
    step.window = options_.window;
    step.window_keep = options_.window_keep;
    for (uint32_t t = 0; t < in.size(); ++t) {
      const int32_t at = lengths_[static_cast<uint64_t>(in[t].sequence)]++;
      const auto block_tokens = static_cast<int32_t>(options_.block_tokens);
      const int32_t block =
          block_tables[in[t].sequence * static_cast<int32_t>(options_.max_blocks) +
                       at / block_tokens];
      tokens[t] = in[t].token;
      positions[t] = at;
      sequences[t] = in[t].sequence;
      slots[t] = block * block_tokens + at % block_tokens;
      output_rows[t] = static_cast<int32_t>(t);
    }
    return step;
  }
  outcome submit(const bitnet_step& step) {
    const outcome o =
        attempt([&](bitnet_error* e) { return table_.queue_submit(queue, &step, e); });
    if (o.status != BITNET_OK) return o;
    return attempt([&](bitnet_error* e) {
      return table_.queue_wait(queue, step.signal_value, 60'000'000'000u, e);
    });
  }
  // The logits of each token, in order.
  std::vector<float> run(const std::vector<token_in>& in) {
    const outcome o = submit(prepare(in));
    if (o.status != BITNET_OK) throw std::runtime_error(o.message);
    return {logits, logits + in.size() * vocab_};
  }
  std::vector<bitnet_kernel_stat> stats() const {
    uint32_t n = 0;
    must([&](bitnet_error* e) { return table_.program_stats(program, nullptr, 0, &n, e); });
    std::vector<bitnet_kernel_stat> out(n);
    must([&](bitnet_error* e) {
      return table_.program_stats(program, out.data(), sizeof(bitnet_kernel_stat), &n, e);
    });
    return out;
  }
  uint64_t calls(const std::string& prefix) const {
    uint64_t n = 0;
    for (const bitnet_kernel_stat& s : stats())
      if (std::string(s.id).starts_with(prefix)) n += s.calls;
    return n;
  }

  int32_t *tokens = nullptr, *positions = nullptr, *sequences = nullptr, *slots = nullptr;
  int32_t *block_tables = nullptr, *output_rows = nullptr;
  float* logits = nullptr;
  bitnet_program* program = nullptr;
  bitnet_kv_pool* pool = nullptr;
  bitnet_queue* queue = nullptr;
  uint64_t block_bytes = 0;

 private:
  void load(const tiny_model& model) {
    const std::vector<bitnet_tensor_desc> descs = model.descs();
    must([&](bitnet_error* e) {
      return table_.weights_create(device_, descs.data(), sizeof(bitnet_tensor_desc),
                                   static_cast<uint32_t>(descs.size()), &weights_, e);
    });
    for (uint32_t i = 0; i < descs.size(); ++i) {
      const std::vector<uint8_t>& data = model.tensors[i].data;
      bitnet_weight_plan plan{};
      plan.struct_size = sizeof plan;
      must([&](bitnet_error* e) { return table_.weight_plan(device_, &descs[i], &plan, e); });
      if (options_.alias && plan.accepts_alias) {
        must([&](bitnet_error* e) {
          return table_.weight_alias(weights_, i, data.data(), data.size(), e);
        });
      } else {
        const uint64_t cut = data.size() / 3;  // a stream of two pieces
        must([&](bitnet_error* e) {
          return table_.weight_write(weights_, i, 0, data.data(), cut, e);
        });
        must([&](bitnet_error* e) {
          return table_.weight_write(weights_, i, cut, data.data() + cut, data.size() - cut, e);
        });
      }
      must([&](bitnet_error* e) { return table_.weight_seal(weights_, i, e); });
    }
  }

  template <class T>
  bitnet_buffer* buffer(uint64_t count, T*& mapped) {
    bitnet_buffer* b = nullptr;
    must([&](bitnet_error* e) { return table_.buffer_create(device_, count * sizeof(T), &b, e); });
    buffers_.push_back(b);
    void* data = nullptr;
    must([&](bitnet_error* e) { return table_.buffer_map(b, &data, e); });
    mapped = static_cast<T*>(data);
    return b;
  }

  void build(const tiny_model& model) {
    bitnet_program_options o{};
    o.struct_size = sizeof o;
    o.flags = options_.flags;
    o.max_tokens = options_.max_tokens;
    o.max_sequences = options_.max_sequences;
    o.max_outputs = options_.max_outputs;
    o.max_blocks = options_.max_blocks;
    o.block_tokens = options_.block_tokens;
    const bitnet_graph graph = model.graph();
    must([&](bitnet_error* e) {
      return table_.program_build(device_, &graph, weights_, &o, &program, e);
    });
    bitnet_step_buffers b{};
    b.struct_size = sizeof b;
    b.tokens = buffer(o.max_tokens, tokens);
    b.positions = buffer(o.max_tokens, positions);
    b.sequences = buffer(o.max_tokens, sequences);
    b.slots = buffer(o.max_tokens, slots);
    b.block_tables = buffer(uint64_t{o.max_sequences} * o.max_blocks, block_tables);
    b.output_rows = buffer(o.max_outputs, output_rows);
    b.logits = buffer(o.max_outputs * vocab_, logits);
    must([&](bitnet_error* e) { return table_.program_bind(program, &b, e); });
  }

  const bitnet_backend_v0& table_;
  runner_options options_;
  uint64_t vocab_;
  bitnet_device* device_ = nullptr;
  bitnet_weights* weights_ = nullptr;
  std::vector<bitnet_buffer*> buffers_;
  std::vector<int32_t> lengths_;
  uint64_t signal_ = 0;
};

}  // namespace bitnet::parity
