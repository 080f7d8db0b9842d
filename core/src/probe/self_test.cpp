#include "probe/self_test.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "bitnet/abi/backend.h"
#include "plugin/foreign_error.hpp"
#include "plugin/text.hpp"

namespace bitnet::probe {
namespace {

using plugin::code;
using table = bitnet_backend_v0;

template <class Object>
using handle = std::unique_ptr<Object, void (*)(Object*)>;

// Three groups of ternary weights, rows that are no multiple of a usual tile, and steps of one
// token and of several, which kernels treat differently.
constexpr uint32_t n_inputs = 384, n_rows = 44, n_tokens = 7, block_tokens = 64;
// Rows for timing: more work than a step costs by itself, and 0.8 MB.
constexpr uint32_t n_timed_rows = 8192;
constexpr uint32_t step_sizes[] = {1, n_tokens};
constexpr float unit_scale = 1;

// Activations: whole, and the largest of each row is 127, so that quantising changes nothing.
int activation(uint32_t token, uint32_t k) {
  if (k == 13 * token) return 127;
  return static_cast<int>((token * 31 + k * 7 + k / 11) % 253) - 126;
}
int trit(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 5 + k * 3 + k / 7 + row * k / 5) % 3) - 1;
}
int small(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 5 + k * 3 + row * k / 3) % 7) - 3;
}

std::string bytes_of(uint32_t format, uint32_t rows, int (*element)(uint32_t, uint32_t)) {
  std::string out;
  const auto put = [&out](const auto& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (uint32_t r = 0; r < rows; ++r) {
    if (format == BITNET_FORMAT_TERNARY2) {
      for (uint32_t at = 0; at < n_inputs / 4; ++at) {
        uint32_t byte = 0;
        for (uint32_t i = 0; i < 4; ++i)
          byte =
              byte << 2 | static_cast<uint32_t>(element(r, at / 32 * 128 + 32 * i + at % 32) + 1);
        out += static_cast<char>(byte);
      }
      continue;
    }
    for (uint32_t k = 0; k < n_inputs; ++k) {
      const auto value = static_cast<float>(element(r, k));
      const auto bits = std::bit_cast<uint32_t>(value);
      if (format == BITNET_FORMAT_F32)
        put(value);
      else if (format == BITNET_FORMAT_BF16)
        put(static_cast<uint16_t>(bits >> 16));
      else  // f16: the exponent moved, for 0 and whole numbers of few bits
        put(static_cast<uint16_t>(
            value == 0 ? 0 : (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112U << 10))));
    }
  }
  return out;
}

struct value_list {
  uint32_t columns;  // of the result
  std::vector<bitnet_value> values;
  std::vector<bitnet_op> ops;

  uint32_t value(uint32_t dtype, int64_t rows, int64_t width) {
    values.push_back({dtype, 0, {rows, width}});
    return static_cast<uint32_t>(values.size() - 1);
  }
  bitnet_op& emit(uint32_t id, std::initializer_list<uint32_t> in,
                  std::initializer_list<uint32_t> out, uint32_t weight = BITNET_NONE) {
    bitnet_op o{};
    o.op = id;
    for (auto* list : {o.inputs, o.outputs, o.weights}) std::fill_n(list, 4, BITNET_NONE);
    std::ranges::copy(in, o.inputs);
    std::ranges::copy(out, o.outputs);
    o.weights[0] = weight;
    return ops.emplace_back(o);
  }
};

// One program: what is between the embedding and the gathered rows.
struct family {
  const char* name;
  uint32_t op;
  uint32_t format;  // of weight 1; NONE: it has none
  uint32_t width;   // of the result
  uint32_t (*middle)(value_list& g, uint32_t x);
  double (*expected)(uint32_t token, uint32_t column);
};

constexpr int64_t all_tokens = BITNET_DIM_TOKENS;

uint32_t ternary_body(value_list& g, uint32_t x, bool composite) {
  const uint32_t q = g.value(BITNET_DTYPE_I8, all_tokens, n_inputs);
  const uint32_t s = g.value(BITNET_DTYPE_F32, all_tokens, 1);
  const uint32_t y = g.value(BITNET_DTYPE_F32, all_tokens, g.columns);
  if (composite) g.emit(BITNET_OP_BIT_LINEAR, {x}, {y}, 1).body_count = 2;
  g.emit(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
  g.emit(BITNET_OP_LINEAR_TERNARY, {q, s}, {y}, 1);
  return y;
}
uint32_t ternary(value_list& g, uint32_t x) {
  return ternary_body(g, x, false);
}
uint32_t bit_linear(value_list& g, uint32_t x) {
  return ternary_body(g, x, true);
}
uint32_t dense(value_list& g, uint32_t x) {
  const uint32_t y = g.value(BITNET_DTYPE_F32, all_tokens, g.columns);
  g.emit(BITNET_OP_LINEAR_DENSE, {x}, {y}, 1);
  return y;
}
uint32_t elementwise(value_list& g, uint32_t x, uint32_t op) {
  const uint32_t y = g.value(BITNET_DTYPE_F32, all_tokens, g.columns);
  if (op == BITNET_OP_RELU2)
    g.emit(op, {x}, {y});
  else
    g.emit(op, {x, x}, {y});
  return y;
}

template <int (*Weight)(uint32_t, uint32_t)>
double product(uint32_t token, uint32_t row) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < n_inputs; ++k) sum += int64_t{activation(token, k)} * Weight(row, k);
  return static_cast<double>(sum);
}

const family families[] = {
    {"linear_ternary.ternary2", BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, n_rows, ternary,
     product<trit>},
    {"bit_linear.ternary2", BITNET_OP_BIT_LINEAR, BITNET_FORMAT_TERNARY2, n_rows, bit_linear,
     product<trit>},
    {"linear_dense.f32", BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_F32, n_rows, dense, product<small>},
    {"linear_dense.f16", BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_F16, n_rows, dense, product<small>},
    {"linear_dense.bf16", BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_BF16, n_rows, dense,
     product<small>},
    {"add", BITNET_OP_ADD, BITNET_FORMAT_NONE, n_inputs,
     [](value_list& g, uint32_t x) { return elementwise(g, x, BITNET_OP_ADD); },
     [](uint32_t t, uint32_t k) { return 2.0 * activation(t, k); }},
    {"mul", BITNET_OP_MUL, BITNET_FORMAT_NONE, n_inputs,
     [](value_list& g, uint32_t x) { return elementwise(g, x, BITNET_OP_MUL); },
     [](uint32_t t, uint32_t k) { return 1.0 * activation(t, k) * activation(t, k); }},
    {"relu2", BITNET_OP_RELU2, BITNET_FORMAT_NONE, n_inputs,
     [](value_list& g, uint32_t x) { return elementwise(g, x, BITNET_OP_RELU2); },
     [](uint32_t t, uint32_t k) {
       const double x = std::max(activation(t, k), 0);
       return x * x;
     }},
};

// Of a step of one token, which is what generating is made of.
const family timed = {
    "speed",      BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, n_timed_rows, ternary,
    product<trit>};

// A call that failed: its name and what the plugin said.
struct trouble {
  std::string call;
  bitnet_status status = BITNET_OK;
  std::string what;
};

// One family on one device.
class trial {
 public:
  trial(const table& t, bitnet_device* device, const family& f)
      : t_(t),
        device_(device),
        family_(f),
        weights_(nullptr, t.weights_destroy),
        pool_(nullptr, t.kv_pool_destroy),
        program_(nullptr, t.program_destroy),
        queue_(nullptr, t.queue_destroy) {}

  bool prepare() {
    return upload() && build() && bind() &&
           take("queue_create", queue_,
                [&](auto** out, auto* err) { return t_.queue_create(device_, out, err); });
  }

  bool step(uint32_t tokens) {
    bitnet_step s{};
    s.struct_size = sizeof s;
    s.n_tokens = s.n_outputs = tokens;
    s.n_sequences = 1;
    s.program = program_.get();
    s.kv_pool = pool_.get();
    s.signal_value = ++timeline_;
    constexpr uint64_t forever = std::numeric_limits<uint64_t>::max();
    return call("queue_submit",
                [&](auto* err) { return t_.queue_submit(queue_.get(), &s, err); }) &&
           call("queue_wait",
                [&](auto* err) { return t_.queue_wait(queue_.get(), timeline_, forever, err); });
  }

  // The first wrong number in words, "" if all are right; nothing if a call failed.
  std::optional<std::string> run(uint32_t tokens) {
    std::fill_n(static_cast<float*>(logits_), std::size_t{n_tokens} * family_.width,
                std::numeric_limits<float>::quiet_NaN());
    if (!step(tokens)) return std::nullopt;
    for (uint32_t t = 0; t < tokens; ++t)
      for (uint32_t i = 0; i < family_.width; ++i) {
        const float found = static_cast<const float*>(logits_)[std::size_t{t} * family_.width + i];
        const double expected = family_.expected(t, i);
        if (static_cast<double>(found) == expected) continue;
        return "row " + std::to_string(i) + " of token " + std::to_string(t) + " of " +
               std::to_string(tokens) + " is " + std::to_string(found) + ", not " +
               std::to_string(static_cast<int64_t>(expected));
      }
    return "";
  }

  // Ternary products in a second of the quickest step; 0 if one failed.
  uint64_t products_per_s() {
    using clock = std::chrono::steady_clock;
    constexpr auto enough = std::chrono::milliseconds(2);
    constexpr int most_steps = 64;
    auto best = clock::duration::max();
    const auto end = clock::now() + enough;
    for (int i = 0; i < 2 || (i < most_steps && clock::now() < end); ++i) {
      const auto begin = clock::now();
      if (!step(1)) return 0;
      best = std::min(best, clock::now() - begin);
    }
    const double seconds = std::max(std::chrono::duration<double>(best).count(), 1e-9);
    return static_cast<uint64_t>(double{n_inputs} * family_.width / seconds);
  }

  // What the plugin counted for the tested op.
  std::vector<std::string> ran() {
    uint32_t count = 64;
    std::vector<bitnet_kernel_stat> stats(count);
    for (bitnet_kernel_stat& s : stats) s.struct_size = sizeof s;
    if (!call("program_stats", [&](auto* err) {
          return t_.program_stats(program_.get(), stats.data(), sizeof(bitnet_kernel_stat), &count,
                                  err);
        }))
      return {};
    stats.resize(std::min<std::size_t>(count, stats.size()));
    std::vector<std::string> out;
    for (const bitnet_kernel_stat& s : stats)
      if (s.op == family_.op && s.calls != 0) out.push_back(plugin::printable_array(s.id));
    return out;
  }

  [[nodiscard]] const trouble& failed() const { return trouble_; }

 private:
  template <class Call>
  bool call(const char* name, Call what) {
    bitnet_error err = plugin::blank_error();
    const bitnet_status status = what(&err);
    if (status == BITNET_OK) return true;
    trouble_ = {name, status, plugin::describe(status, err)};
    return false;
  }
  template <class Object, class Call>
  bool take(const char* name, handle<Object>& to, Call make) {
    Object* raw = nullptr;
    if (!call(name, [&](auto* err) { return make(&raw, err); })) return false;
    to.reset(raw);
    return true;
  }

  static bitnet_tensor_desc describe(uint32_t format, uint32_t rows, const std::string& bytes) {
    bitnet_tensor_desc d{};
    d.struct_size = sizeof d;
    d.format = format;
    d.rank = 2;
    d.ne[0] = n_inputs;
    d.ne[1] = rows;
    d.ne[2] = d.ne[3] = 1;
    d.data_bytes = bytes.size();
    if (format == BITNET_FORMAT_TERNARY2) {
      d.n_scales = 1;
      d.scales = &unit_scale;
    }
    d.name = {"self-test", 9};
    return d;
  }

  bool upload() {
    std::vector<std::string> data = {bytes_of(BITNET_FORMAT_F32, n_tokens, activation)};
    std::vector<bitnet_tensor_desc> descs = {describe(BITNET_FORMAT_F32, n_tokens, data[0])};
    if (family_.format != BITNET_FORMAT_NONE) {
      const bool is_ternary = family_.format == BITNET_FORMAT_TERNARY2;
      data.push_back(bytes_of(family_.format, family_.width, is_ternary ? trit : small));
      descs.push_back(describe(family_.format, family_.width, data[1]));
    }
    if (!take("weights_create", weights_, [&](auto** out, auto* err) {
          return t_.weights_create(device_, descs.data(), sizeof(bitnet_tensor_desc),
                                   static_cast<uint32_t>(descs.size()), out, err);
        }))
      return false;
    for (uint32_t i = 0; i < data.size(); ++i)
      if (!call("weight_write",
                [&](auto* err) {
                  return t_.weight_write(weights_.get(), i, 0, data[i].data(), data[i].size(), err);
                }) ||
          !call("weight_seal", [&](auto* err) { return t_.weight_seal(weights_.get(), i, err); }))
        return false;
    return true;
  }

  bool build() {
    value_list g{family_.width, {}, {}};
    const uint32_t x = g.value(BITNET_DTYPE_F32, all_tokens, n_inputs);
    g.emit(BITNET_OP_EMBED_GATHER, {}, {x}, 0);
    const uint32_t y = family_.middle(g, x);
    const uint32_t logits = g.value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, family_.width);
    g.emit(BITNET_OP_GATHER_ROWS, {y}, {logits});
    const bitnet_graph graph{sizeof graph,
                             sizeof(bitnet_value),
                             sizeof(bitnet_op),
                             static_cast<uint32_t>(g.values.size()),
                             static_cast<uint32_t>(g.ops.size()),
                             logits,
                             g.values.data(),
                             g.ops.data()};
    bitnet_program_options o{};
    o.struct_size = sizeof o;
    o.max_tokens = o.max_outputs = n_tokens;
    o.max_sequences = o.max_blocks = 1;
    o.block_tokens = block_tokens;
    o.n_buckets = static_cast<uint32_t>(std::size(step_sizes));
    o.buckets = step_sizes;
    // The program has no attention, but a step names a pool.
    bitnet_kv_config kv{};
    kv.struct_size = sizeof kv;
    kv.dtype_k = kv.dtype_v = BITNET_DTYPE_F16;
    kv.n_layers = kv.n_kv_heads = kv.n_blocks = 1;
    kv.head_dim = 64;
    kv.block_tokens = block_tokens;
    return take("program_build", program_,
                [&](auto** out, auto* err) {
                  return t_.program_build(device_, &graph, weights_.get(), &o, out, err);
                }) &&
           take("kv_pool_create", pool_,
                [&](auto** out, auto* err) { return t_.kv_pool_create(device_, &kv, out, err); });
  }

  bool bind() {
    bitnet_step_buffers bound{};
    bound.struct_size = sizeof bound;
    const auto make = [&](bitnet_buffer*& slot, uint64_t elements, int32_t step) {
      handle<bitnet_buffer> buffer(nullptr, t_.buffer_destroy);
      void* mapped = nullptr;
      if (!take("buffer_create", buffer,
                [&](auto** out, auto* err) {
                  return t_.buffer_create(device_, elements * sizeof(int32_t), out, err);
                }) ||
          !call("buffer_map",
                [&](auto* err) { return t_.buffer_map(buffer.get(), &mapped, err); }) ||
          mapped == nullptr)
        return false;
      for (uint64_t i = 0; i < elements; ++i)
        static_cast<int32_t*>(mapped)[i] = static_cast<int32_t>(i) * step;
      logits_ = mapped;  // of the last one made
      slot = buffer.get();
      buffers_.push_back(std::move(buffer));
      return true;
    };
    return make(bound.tokens, n_tokens, 1) && make(bound.positions, n_tokens, 1) &&
           make(bound.sequences, n_tokens, 0) && make(bound.slots, n_tokens, 1) &&
           make(bound.block_tables, 1, 0) && make(bound.output_rows, n_tokens, 1) &&
           make(bound.logits, uint64_t{n_tokens} * family_.width, 0) &&
           call("program_bind",
                [&](auto* err) { return t_.program_bind(program_.get(), &bound, err); });
  }

  const table& t_;
  bitnet_device* device_;
  const family& family_;
  handle<bitnet_weights> weights_;
  handle<bitnet_kv_pool> pool_;
  std::vector<handle<bitnet_buffer>> buffers_;
  handle<bitnet_program> program_;
  handle<bitnet_queue> queue_;
  void* logits_ = nullptr;
  uint64_t timeline_ = 0;
  trouble trouble_;
};

bool lists(const device_report& d, uint32_t op, uint32_t format) {
  return std::ranges::any_of(d.kernels, [&](const bitnet_kernel_info& k) {
    return k.op == op &&
           (k.format == format || k.format == BITNET_FORMAT_NONE || format == BITNET_FORMAT_NONE);
  });
}

// Does the device list all that the program of this family needs?
bool is_claimed(const device_report& d, const family& f) {
  const bool quantises = f.format == BITNET_FORMAT_TERNARY2;
  return lists(d, f.op, f.format) && lists(d, BITNET_OP_EMBED_GATHER, BITNET_FORMAT_F32) &&
         lists(d, BITNET_OP_GATHER_ROWS, BITNET_FORMAT_NONE) &&
         (!quantises || (lists(d, BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE) &&
                         lists(d, BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2)));
}

plugin::defect failed(const std::string& where, const trouble& t) {
  return {code::probe_failed, BITNET_UNAVAILABLE,
          "self-test of " + where + ": " + t.call + "() failed: " + t.what, ""};
}

plugin::checked<void> test_device(const table& t, uint32_t index, const device_report& report,
                                  self_test_result& out) {
  bitnet_error err = plugin::blank_error();
  bitnet_device* raw = nullptr;
  if (const auto s = t.device_open(t.self, index, &raw, &err); s != BITNET_OK)
    return std::unexpected(
        failed("device " + std::to_string(index), {"device_open", s, plugin::describe(s, err)}));
  const handle<bitnet_device> device(raw, t.device_close);
  for (const family& f : families) {
    if (!is_claimed(report, f)) continue;
    trial one(t, device.get(), f);
    std::optional<std::string> wrong;
    if (one.prepare())
      for (const uint32_t tokens : step_sizes)
        if (wrong = one.run(tokens); !wrong || !wrong->empty()) break;
    const std::string head = (out.summary.empty() ? "" : "; ") + std::string(f.name);
    if (!wrong) {
      if (one.failed().status != BITNET_UNSUPPORTED)
        return std::unexpected(failed(f.name, one.failed()));
      out.summary += head + ": not tested, " + one.failed().call + " says unsupported";
      continue;
    }
    out.summary += head + (wrong->empty() ? ": right" : ": " + *wrong);
    if (wrong->empty()) continue;
    const auto blamed = one.ran();
    if (blamed.empty())
      return plugin::reject(code::probe_self_test, std::string(f.name) +
                                                       " gives wrong results and counts no "
                                                       "kernel: " +
                                                       *wrong);
    for (const std::string& id : blamed)
      if (std::ranges::find(out.wrong, id) == out.wrong.end()) out.wrong.push_back(id);
  }
  if (out.wrong.empty() && is_claimed(report, timed))
    if (trial one(t, device.get(), timed); one.prepare())
      out.products_per_s[index] = one.products_per_s();
  return {};
}

}  // namespace

plugin::checked<self_test_result> run_self_test(const plugin::backend& b,
                                                const std::vector<device_report>& devices) {
  self_test_result out;
  out.products_per_s.resize(devices.size());
  for (uint32_t i = 0; i < devices.size(); ++i)
    if (auto fine = test_device(b.table(), i, devices[i], out); !fine)
      return std::unexpected(std::move(fine.error()));
  if (out.summary.empty()) out.summary = "nothing that whole numbers can test is claimed";
  return out;
}

}  // namespace bitnet::probe
