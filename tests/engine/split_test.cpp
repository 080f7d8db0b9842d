// One model on two devices: the first layers on one, the rest on the other, the hidden state handed
// over through ports. Cut at any layer it generates the same text as either device alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "../demo_model.hpp"
#include "compute/steps.hpp"
#include "engine/graph.hpp"
#include "model/model.hpp"
#include "one_thread.hpp"
#include "plugin/loading/backend.hpp"

namespace bitnet {
namespace {

constexpr uint32_t n_context = 128, block_tokens = 64, n_story = 32;

using test::need;
using test::one_thread;

template <class T>
T need(compute::attempt<T> made) {
  return need(as_result(std::move(made), "split"));
}

bitnet_tensor_desc describe(const model::weight& w) {
  bitnet_tensor_desc d{};
  d.struct_size = sizeof d;
  d.format = w.format;
  d.rank = w.rank;
  d.ne[0] = w.ne[0];
  d.ne[1] = w.ne[1];
  d.ne[2] = d.ne[3] = 1;
  d.data_bytes = w.data_bytes;
  d.scale_group = w.scale_group;
  d.n_scales = w.scales.size();
  d.scales = w.scales.data();
  return d;
}

// The ops [first, last) of a graph with the weights that they read, on a device. What is written
// before them comes in, and what is read after them goes out.
class part {
 public:
  part(const compute::device& d, const model::model& m, const compute::graph& whole,
       std::size_t first, std::size_t last)
      : device_(d), pool_(nullptr, d.table().kv_pool_destroy) {
    graph_.values = whole.values;
    graph_.ops.assign(whole.ops.begin() + static_cast<std::ptrdiff_t>(first),
                      whole.ops.begin() + static_cast<std::ptrdiff_t>(last));
    std::vector<uint32_t> kept;  // index of the model for each of ours
    for (bitnet_op& o : graph_.ops)
      for (uint32_t& w : o.weights) {
        if (w == BITNET_NONE) continue;
        const auto at = std::ranges::find(kept, w);
        const auto index = static_cast<uint32_t>(at - kept.begin());
        if (at == kept.end()) kept.push_back(w);
        w = index;
      }
    graph_.add_facts();
    if (first != 0) add_crossing(whole, 0, first, first, last, BITNET_PORT_VALUE_IN);
    if (last == whole.ops.size())
      graph_.add_port(BITNET_PORT_LOGITS, whole.logits());
    else
      add_crossing(whole, first, last, last, whole.ops.size(), BITNET_PORT_VALUE_OUT);
    upload(m, kept);
    build(m);
  }

  bitnet_step step(uint32_t n_tokens, uint32_t n_outputs) const {
    bitnet_step s{};
    s.n_tokens = n_tokens;
    s.n_sequences = 1;
    s.n_outputs = n_outputs;
    s.binding = binding_->get();
    return s;
  }
  void run(uint32_t n_tokens, uint32_t n_outputs) {
    need(queue_->submit(step(n_tokens, n_outputs)));
    need(queue_->wait(60'000'000'000));
  }
  template <class T>
  T* of(uint32_t role) const {
    return binding_->of<T>(role);
  }
  uint64_t crossing() const { return crossing_; }  // columns

 private:
  // The one value that ops of [from, to) write and ops of [from_reader, to_reader) read.
  void add_crossing(const compute::graph& g, std::size_t from, std::size_t to,
                    std::size_t from_reader, std::size_t to_reader, uint32_t role) {
    std::vector<bool> written(g.values.size());
    for (std::size_t i = from; i < to; ++i)
      for (const uint32_t v : g.ops[i].outputs)
        if (v != BITNET_NONE) written[v] = true;
    std::optional<uint32_t> found;
    for (std::size_t i = from_reader; i < to_reader; ++i)
      for (const uint32_t v : g.ops[i].inputs) {
        if (v == BITNET_NONE || !written[v] || found == v) continue;
        if (found) throw std::runtime_error("two values cross the cut");
        found = v;
      }
    crossing_ = static_cast<uint64_t>(g.values[*found].dims[1]);
    graph_.add_port(role, *found);
  }

  void upload(const model::model& m, const std::vector<uint32_t>& kept) {
    std::vector<bitnet_tensor_desc> descs;
    for (const uint32_t w : kept) descs.push_back(describe(m.weights()[w]));
    weights_.emplace(need(compute::weights::create(device_, descs)));
    for (uint32_t i = 0; i < kept.size(); ++i) {
      need(m.stream_weight(kept[i], [&](uint64_t offset, std::span<const std::byte> bytes) {
        return as_result(weights_->write(i, offset, bytes), "split");
      }));
      need(weights_->seal(i));
    }
  }

  void build(const model::model& m) {
    bitnet_program_options o{};
    o.struct_size = sizeof o;
    o.flags = BITNET_PROGRAM_DETERMINISTIC;
    o.max_tokens = 16;
    o.max_sequences = o.max_outputs = 1;
    o.max_blocks = n_context / block_tokens;
    o.block_tokens = block_tokens;
    bitnet_kv_config kv{};
    kv.struct_size = sizeof kv;
    kv.dtype_k = kv.dtype_v = BITNET_DTYPE_F16;
    kv.n_layers = m.shape().n_layers;
    kv.n_kv_heads = m.shape().n_kv_heads;
    kv.head_dim_k = kv.head_dim_v = m.shape().head_dim;
    kv.block_tokens = block_tokens;
    kv.n_blocks = o.max_blocks;
    bitnet_weights* const weights = weights_->get();
    pool_ = need(compute::make_pool(device_, kv));
    program_.emplace(need(compute::program::build(device_, graph_, {&weights, 1}, o)));
    binding_.emplace(need(compute::binding::make(device_, *program_, graph_, o, pool_.get())));
    queue_.emplace(need(compute::queue::make(device_)));
  }

  const compute::device& device_;
  compute::graph graph_;
  uint64_t crossing_ = 0;
  std::optional<compute::weights> weights_;
  compute::handle<bitnet_kv_pool> pool_;
  std::optional<compute::program> program_;
  std::optional<compute::binding> binding_;
  std::optional<compute::queue> queue_;
};

class split : public testing::Test {
 protected:
  void SetUp() override {
    if (test::demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
    model_.emplace(need(model::model::load(test::demo_model(), {})));
    graph_ = engine::graph_of(*model_, n_context);
    const auto open = [&](const char* file, const char* name) {
      return need(plugin::backend::load(file, name, BITNET_PURPOSE_LOAD, host_));
    };
    cpu_ = open(BITNET_CPU_PLUGIN, "cpu");
    gpu_ = open(BITNET_GPU_PLUGIN, "vulkan");
    uint32_t n = 0;
    bitnet_error err = plugin::blank_error();
    if (gpu_->table().device_count(gpu_->table().self, &n, &err) != BITNET_OK)
      GTEST_SKIP() << err.message;
  }

  static compute::device open(const plugin::backend& b) {
    bitnet_device_info info{};
    info.struct_size = sizeof info;
    bitnet_error err = plugin::blank_error();
    if (b.table().device_info(b.table().self, 0, &info, &err) != BITNET_OK)
      throw std::runtime_error(err.message);
    return need(compute::device::open(b.table(), 0, info));
  }

  // Behind the last op of layer `layer`, whose residual sum ends it.
  [[nodiscard]] std::size_t behind(uint32_t layer) const {
    uint32_t sums = 0;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      sums += graph_.ops[i].op == BITNET_OP_ADD ? 1 : 0;
      if (sums == 2 * (layer + 1)) return i + 1;
    }
    throw std::runtime_error("there is no such layer");
  }

  // The most likely tokens after a prompt; `parts` run one after the other.
  std::vector<int32_t> story(const std::vector<part*>& parts) {
    std::vector<int32_t> ids = need(model_->tokens().encode("Once upon a time", {}));
    const std::size_t n_prompt = ids.size();
    uint32_t done = 0;
    while (ids.size() < n_prompt + n_story) {
      const auto n = static_cast<uint32_t>(ids.size()) - done;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        fill(*parts[p], ids, done, n);
        if (p != 0)
          std::memcpy(parts[p]->of<float>(BITNET_PORT_VALUE_IN),
                      parts[p - 1]->of<float>(BITNET_PORT_VALUE_OUT),
                      n * parts[p]->crossing() * sizeof(float));
        parts[p]->run(n, p + 1 == parts.size() ? 1 : 0);
      }
      done += n;
      const float* logits = parts.back()->of<float>(BITNET_PORT_LOGITS);
      ids.push_back(static_cast<int32_t>(
          std::max_element(logits, logits + model_->shape().n_vocab) - logits));
    }
    return ids;
  }

  static void fill(const part& p, const std::vector<int32_t>& ids, uint32_t first, uint32_t n) {
    for (uint32_t t = 0; t < n; ++t) {
      const auto at = static_cast<int32_t>(first + t);
      const std::pair<uint32_t, int32_t> facts[] = {{BITNET_PORT_TOKENS, ids[first + t]},
                                                    {BITNET_PORT_POSITIONS, at},
                                                    {BITNET_PORT_SEQUENCES, 0},
                                                    {BITNET_PORT_SLOTS, at}};
      for (const auto& [role, value] : facts)
        if (auto* to = p.of<int32_t>(role)) to[t] = value;
    }
    if (auto* tables = p.of<int32_t>(BITNET_PORT_BLOCK_TABLES))
      for (uint32_t b = 0; b < n_context / block_tokens; ++b) tables[b] = static_cast<int32_t>(b);
    if (auto* rows = p.of<int32_t>(BITNET_PORT_OUTPUT_ROWS)) *rows = static_cast<int32_t>(n - 1);
  }

  one_thread host_;
  std::optional<model::model> model_;
  compute::graph graph_;
  std::shared_ptr<plugin::backend> cpu_, gpu_;
};

TEST_F(split, generates_what_either_device_generates_alone) {
  const compute::device cpu = open(*cpu_), gpu = open(*gpu_);
  const std::size_t all = graph_.ops.size();
  part on_cpu(cpu, *model_, graph_, 0, all), on_gpu(gpu, *model_, graph_, 0, all);
  const std::vector<int32_t> alone = story({&on_cpu});
  EXPECT_EQ(story({&on_gpu}), alone);
  for (uint32_t layer = 0; layer + 1 < model_->shape().n_layers; ++layer) {
    SCOPED_TRACE(layer);
    const std::size_t cut = behind(layer);
    part lower(gpu, *model_, graph_, 0, cut), upper(cpu, *model_, graph_, cut, all);
    EXPECT_EQ(story({&lower, &upper}), alone);
  }
}

}  // namespace
}  // namespace bitnet
