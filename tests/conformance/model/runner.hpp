#pragma once
// A model on a backend: weights loaded, program bound, steps with their block tables.

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bitnet/abi/answers.h"
#include "model/calls.hpp"
#include "model/guarded_memory.hpp"
#include "model/kv_types.hpp"
#include "model/model.hpp"
#include "model/requests.hpp"

namespace bitnet::conformance {

// Called with how a weight is kept, such as "packed by the plugin: gpu/ternary2-words/1"; nullptr:
// none.
inline void (*on_weight)(const std::string& how) = nullptr;

// The second form of a weight (bitnet/abi/packed.h), as the plugin packed it.
struct packed_weight {
  uint32_t index = 0;
  std::string layout_id;
  std::vector<uint8_t> data;
};

struct runner_options {
  uint32_t max_tokens = 16, max_sequences = 3, max_outputs = 16, max_blocks = 8, block_tokens = 4;
  uint32_t n_blocks = 30;
  uint32_t dtype_k = BITNET_DTYPE_F16, dtype_v = BITNET_DTYPE_F16;
  uint32_t window = 0, window_keep = 0;
  uint32_t flags = BITNET_PROGRAM_DETERMINISTIC;
  uint32_t precisions = 0;
  bool alias = false;
  std::vector<uint32_t> buckets;
  uint32_t device = 0;
  bool guarded = false;  // bytes before and behind each part that a port names are looked at
  const std::vector<packed_weight>* packed = nullptr;  // second forms to adopt; nullptr: none
  bitnet_device* opened = nullptr;  // a device of the caller, which stays open; nullptr: its own
};

struct token_in {
  int32_t token;
  int32_t sequence = 0;
};

// What the host writes for a step of one binding, and reads after it.
struct step_memory {
  int32_t *tokens = nullptr, *positions = nullptr, *sequences = nullptr, *slots = nullptr;
  int32_t *block_tables = nullptr, *output_rows = nullptr;
  int32_t* states = nullptr;  // nullptr: the model has none
  float* logits = nullptr;
  std::vector<void*> more;  // of model::more_ports
  bitnet_binding* binding = nullptr;
};

class runner : public step_memory {
 public:
  runner(const bitnet_backend_v0& table, const model& m, const runner_options& options = {})
      : table_(table), options_(options), vocab_(m.vocabulary()) {
    device_ = options.opened;
    if (device_ == nullptr) {
      must([&](bitnet_error* e) { return open_device(table, options.device, &own_device_, e); });
      device_ = own_device_;
    }
    try {
      load(m);
      if (options.packed != nullptr) adopt(*options.packed);
      build(m);
      make_pool(m);
      static_cast<step_memory&>(*this) = bind();
      must([&](bitnet_error* e) { return create_queue(table, device_, &queue, e); });
    } catch (...) {
      release();
      throw;
    }
    lengths_.assign(options.max_sequences, 0);
  }
  ~runner() { release(); }
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;

  // One binding more, with memory of its own; it goes with the runner.
  step_memory bind() {
    const bitnet_program_options& o = bounds_;
    step_memory out;
    std::vector<bitnet_bound> bound;
    const auto port = [&](uint64_t bytes) { return port_memory(bytes, bound); };
    const auto ints = [&](uint64_t n) { return static_cast<int32_t*>(port(n * sizeof(int32_t))); };
    out.tokens = ints(o.max_tokens);
    out.positions = ints(o.max_tokens);
    out.sequences = ints(o.max_tokens);
    out.slots = ints(o.max_tokens);
    out.block_tables = ints(uint64_t{o.max_sequences} * o.max_blocks);
    out.output_rows = ints(o.max_outputs);
    if (n_states_ != 0) {
      out.states = ints(o.max_sequences);
      // Neither in order nor from the first on.
      for (uint32_t s = 0; s < o.max_sequences; ++s)
        out.states[s] = static_cast<int32_t>(n_states_ - 1 - s);
    }
    for (const uint64_t bytes : more_bytes_) out.more.push_back(port(bytes));
    if (vocab_ != 0) out.logits = static_cast<float*>(port(o.max_outputs * vocab_ * sizeof(float)));
    const bitnet_bind_request r = bind_request(bound, pool);
    must([&](bitnet_error* e) { return table_.program_bind(program, &r, &out.binding, e); });
    bindings_.push_back(out.binding);
    // Blocks of a sequence lie scattered, as after a long session.
    for (uint32_t s = 0; s < o.max_sequences; ++s)
      for (uint32_t b = 0; b < o.max_blocks; ++b)
        out.block_tables[s * o.max_blocks + b] =
            static_cast<int32_t>((7 * (s * o.max_blocks + b) + 3) % options_.n_blocks);
    return out;
  }

  // Writes the next tokens of their sequences into the memory of a step; every one wants logits.
  bitnet_step prepare(const std::vector<token_in>& in) { return prepare(in, *this); }
  bitnet_step prepare(const std::vector<token_in>& in, const step_memory& to) {
    bitnet_step step{};
    step.struct_size = sizeof step;
    step.n_tokens = static_cast<uint32_t>(in.size());
    step.n_outputs = step.n_tokens;
    step.n_sequences = options_.max_sequences;
    step.binding = to.binding;
    step.cancel_token = 1;
    step.signal_value = ++signal_;
    step.window = options_.window;
    step.window_keep = options_.window_keep;
    for (uint32_t t = 0; t < in.size(); ++t) {
      const int32_t at = lengths_[static_cast<uint64_t>(in[t].sequence)]++;
      const auto block_tokens = static_cast<int32_t>(options_.block_tokens);
      const int32_t block =
          to.block_tables[in[t].sequence * static_cast<int32_t>(options_.max_blocks) +
                          at / block_tokens];
      to.tokens[t] = in[t].token;
      to.positions[t] = at;
      to.sequences[t] = in[t].sequence;
      to.slots[t] = block * block_tokens + at % block_tokens;
      to.output_rows[t] = static_cast<int32_t>(t);
    }
    return step;
  }
  // Lets the next token of a sequence be at that position.
  void rewind(int32_t sequence, int32_t to = 0) { lengths_[static_cast<uint64_t>(sequence)] = to; }
  outcome wait(uint64_t value) const {
    return attempt(
        [&](bitnet_error* e) { return table_.queue_wait(queue, value, 60'000'000'000u, e); });
  }
  outcome submit(const bitnet_step& step) {
    outcome o = attempt([&](bitnet_error* e) { return table_.queue_submit(queue, &step, e); });
    return o.status == BITNET_OK ? wait(step.signal_value) : o;
  }
  uint64_t next_signal() { return ++signal_; }

  // Blocks of the pool, in turn on the queue; done when these return.
  outcome copy_blocks(std::span<const uint32_t> from, std::span<const uint32_t> to) {
    const uint64_t signal = next_signal();
    outcome o = attempt([&](bitnet_error* e) {
      return table_.kv_copy(queue, pool, from.data(), to.data(), static_cast<uint32_t>(from.size()),
                            signal, e);
    });
    return o.status == BITNET_OK ? wait(signal) : o;
  }
  outcome export_blocks(std::span<const uint32_t> blocks, std::span<uint8_t> to) {
    const uint64_t signal = next_signal();
    outcome o = attempt([&](bitnet_error* e) {
      return table_.kv_export(queue, pool, blocks.data(), static_cast<uint32_t>(blocks.size()),
                              to.data(), to.size(), signal, e);
    });
    return o.status == BITNET_OK ? wait(signal) : o;
  }
  outcome import_blocks(std::span<const uint32_t> blocks, std::span<const uint8_t> from) {
    const uint64_t signal = next_signal();
    outcome o = attempt([&](bitnet_error* e) {
      return table_.kv_import(queue, pool, blocks.data(), static_cast<uint32_t>(blocks.size()),
                              from.data(), from.size(), signal, e);
    });
    return o.status == BITNET_OK ? wait(signal) : o;
  }
  // The logits of each token, in order.
  std::vector<float> run(const std::vector<token_in>& in) {
    const outcome o = submit(prepare(in));
    if (o.status != BITNET_OK) throw call_failed(o);
    return {logits, logits + in.size() * vocab_};
  }
  std::vector<bitnet_kernel_stat> stats() const {
    uint32_t n = 0;
    must([&](bitnet_error* e) { return table_.program_stats(program, nullptr, 0, &n, e); });
    sane("program_stats", bitnet_wrong_count(n));
    std::vector<bitnet_kernel_stat> out(n);
    must([&](bitnet_error* e) {
      return table_.program_stats(program, out.data(), sizeof(bitnet_kernel_stat), &n, e);
    });
    return out;
  }
  // Those of the model, sealed; they end with the runner.
  [[nodiscard]] bitnet_weights* weights() const { return weights_; }
  // Lets the plugin pack second forms of the model's weights. None where it has no such interface.
  std::vector<packed_weight> pack(const model& m) const {
    std::vector<packed_weight> out;
    const bitnet_packed_weights_v1* packing = packing_interface();
    for (uint32_t i = 0; packing != nullptr && i < m.tensors.size(); ++i) {
      const bitnet_packed_info info = packed_info(*packing, i, m.tensors[i].desc);
      if (info.bytes == 0) continue;
      const void* made = nullptr;
      must([&](bitnet_error* e) { return packing->pack(weights_, i, &made, e); });
      sane("pack", bitnet_wrong_packed_form(made, info.alignment_bytes));
      const auto* bytes = static_cast<const uint8_t*>(made);
      out.push_back({i, info.layout_id, {bytes, bytes + info.bytes}});
      note_kept("second form packed by the plugin: ", info.layout_id);
    }
    return out;
  }
  uint64_t calls(const std::string& prefix) const {
    uint64_t n = 0;
    for (const bitnet_kernel_stat& s : stats())
      if (std::string(s.id).starts_with(prefix)) n += s.calls;
    return n;
  }

  // Whether something wrote beside the parts that ports name; only with runner_options::guarded.
  bool guards_are_intact() const {
    return std::ranges::all_of(guards_, [](const std::span<const uint8_t>& guard) {
      return std::ranges::all_of(guard, [](uint8_t b) { return b == guard_byte; });
    });
  }

  uint64_t vocabulary() const { return vocab_; }
  // As copies, exports and imports name the state of a sequence; the pool has two more than it has
  // sequences, of which this is one.
  uint32_t state_block(uint32_t sequence) const {
    return options_.n_blocks + static_cast<uint32_t>(states[sequence]);
  }
  uint32_t spare_state_block() const { return options_.n_blocks; }

  bitnet_program* program = nullptr;
  bitnet_kv_pool* pool = nullptr;
  bitnet_queue* queue = nullptr;
  uint64_t block_bytes = 0;

 private:
  static constexpr uint8_t guard_byte = 0x5a;

  static void note_kept(const char* how, const char* layout_id) {
    if (on_weight != nullptr) on_weight(std::string(how) + layout_id);
  }
  const bitnet_packed_weights_v1* packing_interface() const {
    if (table_.query_interface == nullptr) return nullptr;
    const std::string name = BITNET_INTERFACE_PACKED_WEIGHTS;
    return reinterpret_cast<const bitnet_packed_weights_v1*>(
        table_.query_interface(table_.self, {name.data(), name.size()}, 1));
  }
  bitnet_packed_info packed_info(const bitnet_packed_weights_v1& packing, uint32_t index,
                                 const bitnet_tensor_desc& desc) const {
    bitnet_packed_info info{};
    info.struct_size = sizeof info;
    must([&](bitnet_error* e) { return packing.describe(weights_, index, &info, e); });
    if (info.bytes != 0)
      sane("describe", bitnet_wrong_packed_info(&info, static_cast<uint64_t>(desc.ne[0]) *
                                                           static_cast<uint64_t>(desc.ne[1])));
    return info;
  }
  // Pages of the caller's are aligned for any kernel; the form lies at their beginning.
  void adopt(const std::vector<packed_weight>& forms) {
    const bitnet_packed_weights_v1* packing = packing_interface();
    for (const packed_weight& form : forms) {
      adopted_.push_back(
          std::make_unique<guarded_memory<uint8_t>>((form.data.size() + 4095) / 4096 * 4096));
      uint8_t* data = adopted_.back()->data();
      std::copy(form.data.begin(), form.data.end(), data);
      must([&](bitnet_error* e) {
        return packing->adopt(weights_, form.index, data, form.data.size(), e);
      });
      note_kept("second form brought to the plugin: ", form.layout_id.c_str());
    }
  }

  void release() {
    if (queue) table_.queue_destroy(queue);
    for (bitnet_binding* b : bindings_) table_.binding_destroy(b);
    if (pool) table_.kv_pool_destroy(pool);
    if (program) table_.program_destroy(program);
    for (bitnet_buffer* b : buffers_) table_.buffer_destroy(b);
    if (weights_) table_.weights_destroy(weights_);
    if (own_device_) table_.device_close(own_device_);
  }

  void make_pool(const model& m) {
    bitnet_kv_config kv{};
    kv.struct_size = sizeof kv;
    kv.dtype_k = options_.dtype_k;
    kv.dtype_v = options_.dtype_v;
    kv.n_layers = m.kv_layers;
    kv.n_kv_heads = m.kv_heads;
    kv.head_dim_k = kv.head_dim_v = m.head_dim;
    kv.block_tokens = options_.block_tokens;
    kv.n_blocks = options_.n_blocks;
    kv.n_states = n_states_ = m.state_elements == 0 ? 0 : options_.max_sequences + 2;
    kv.state_elements = m.state_elements;
    block_bytes = (kv_head_bytes(kv.dtype_k, m.head_dim) + kv_head_bytes(kv.dtype_v, m.head_dim)) *
                  kv.n_layers * kv.n_kv_heads * kv.block_tokens;
    must([&](bitnet_error* e) { return table_.kv_pool_create(device_, &kv, &pool, e); });
  }

  void load(const model& m) {
    const std::vector<bitnet_tensor_desc> descs = m.descs();
    must([&](bitnet_error* e) { return create_weights(table_, device_, descs, &weights_, e); });
    for (uint32_t i = 0; i < descs.size(); ++i) {
      // Ends at a page without access.
      memory_.push_back(
          std::make_unique<guarded_memory<uint8_t>>(std::span<const uint8_t>(m.tensors[i].data)));
      guarded_memory<uint8_t>& data = *memory_.back();
      bitnet_weight_plan plan{};
      plan.struct_size = sizeof plan;
      must([&](bitnet_error* e) { return table_.weight_plan(device_, &descs[i], &plan, e); });
      sane("weight_plan", bitnet_wrong_weight_plan(&plan));
      const uint64_t alignment = plan.alignment_bytes == 0 ? 1 : plan.alignment_bytes;
      if (options_.alias && plan.accepts_alias &&
          reinterpret_cast<uintptr_t>(data.data()) % alignment == 0) {
        must([&](bitnet_error* e) {
          return table_.weight_alias(weights_, i, data.data(), data.size(), e);
        });
        note_kept("in place: ", plan.layout_id);
      } else {
        note_kept(plan.accepts_alias ? "copied: " : "packed by the plugin: ", plan.layout_id);
        const uint64_t cut = data.size() / 3;  // a stream of two pieces
        must([&](bitnet_error* e) {
          return table_.weight_write(weights_, i, 0, data.data(), cut, e);
        });
        must([&](bitnet_error* e) {
          return table_.weight_write(weights_, i, cut, data.data() + cut, data.size() - cut, e);
        });
      }
      must([&](bitnet_error* e) { return table_.weight_seal(weights_, i, e); });
      if (!options_.alias) memory_.clear();  // borrowed for the calls
    }
  }

  // What answers.h says of the answer of a slot.
  static void sane(const char* slot, const char* wrong) {
    if (wrong != nullptr) throw std::runtime_error(std::string(slot) + "() " + wrong);
  }

  void* buffer(uint64_t bytes, bitnet_buffer*& b) {
    must([&](bitnet_error* e) { return create_buffer(table_, device_, bytes, &b, e); });
    sane("buffer_create", bitnet_wrong_handle(b));
    buffers_.push_back(b);
    void *data = nullptr, *again = nullptr;
    for (void** to : {&data, &again})
      must([&](bitnet_error* e) { return table_.buffer_map(b, to, e); });
    sane("buffer_map", bitnet_wrong_mapping(data, again, bytes, 1));
    return data;
  }

  // Memory of one port. Guarded: a part in the middle of its buffer.
  void* port_memory(uint64_t bytes, std::vector<bitnet_bound>& bound) {
    bitnet_buffer* b = nullptr;
    uint64_t before = 0, behind = 0;
    if (options_.guarded) {
      bitnet_device_info about{};
      about.struct_size = sizeof about;
      must([&](bitnet_error* e) {
        return table_.device_info(table_.self, options_.device, &about, e);
      });
      before = std::max<uint64_t>(about.buffer_alignment_bytes, 64);
      behind = 256;
    }
    auto* base = static_cast<uint8_t*>(buffer(before + bytes + behind, b));
    for (const std::span guard :
         {std::span(base, before), std::span(base + before + bytes, behind)}) {
      std::ranges::fill(guard, guard_byte);
      guards_.push_back(guard);
    }
    bound.push_back({b, before, bytes});
    return base + before;
  }

  void build(const model& m) {
    bitnet_program_options& o = bounds_;
    o.struct_size = sizeof o;
    o.flags = options_.flags;
    o.precisions = options_.precisions;
    o.max_tokens = options_.max_tokens;
    o.max_sequences = options_.max_sequences;
    o.max_outputs = options_.max_outputs;
    o.max_blocks = options_.max_blocks;
    o.block_tokens = options_.block_tokens;
    o.n_buckets = static_cast<uint32_t>(options_.buckets.size());
    o.buckets = options_.buckets.empty() ? nullptr : options_.buckets.data();
    for (const bitnet_port& p : m.more_ports) {
      if (p.role == BITNET_PORT_LARGEST) {
        more_bytes_.push_back(o.max_outputs * sizeof(bitnet_largest));
        continue;
      }
      const bitnet_value& v = m.values[p.value];
      const uint64_t rows = v.dims[0] == BITNET_DIM_OUTPUTS ? o.max_outputs : o.max_tokens;
      more_bytes_.push_back(rows * static_cast<uint64_t>(v.dims[1]) *
                            (v.dtype == BITNET_DTYPE_I8 ? 1 : 4));
    }
    const std::vector<bitnet_port> ports = m.ports();
    const bitnet_graph graph = m.graph(ports);
    const bitnet_build_request r = build_request(graph, {&weights_, 1}, o);
    must([&](bitnet_error* e) { return table_.program_build(device_, &r, &program, e); });
  }

  const bitnet_backend_v0& table_;
  runner_options options_;
  uint64_t vocab_;
  bitnet_device *device_ = nullptr, *own_device_ = nullptr;
  bitnet_weights* weights_ = nullptr;
  std::vector<std::unique_ptr<guarded_memory<uint8_t>>> memory_;  // aliased weights
  std::vector<std::unique_ptr<guarded_memory<uint8_t>>> adopted_;
  bitnet_program_options bounds_{};
  std::vector<uint64_t> more_bytes_;  // of model::more_ports
  std::vector<bitnet_buffer*> buffers_;
  std::vector<std::span<const uint8_t>> guards_;
  std::vector<bitnet_binding*> bindings_;
  std::vector<int32_t> lengths_;
  uint32_t n_states_ = 0;
  uint64_t signal_ = 0;
};

}  // namespace bitnet::conformance
