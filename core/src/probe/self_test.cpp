#include "probe/self_test.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bitnet/abi/answers.h"
#include "plugin/foreign_error.hpp"
#include "plugin/text.hpp"
#include "probe/golden.hpp"

namespace bitnet::probe {
namespace {

using plugin::code;
using table = bitnet_backend_v0;

template <class Object>
using handle = std::unique_ptr<Object, void (*)(Object*)>;

constexpr float unit_scale = 1;

// A call that failed: its name and what the plugin said.
struct trouble {
  std::string call;
  bitnet_status status = BITNET_OK;
  std::string what;
};

// One program on one device.
class golden_run {
 public:
  golden_run(const table& t, bitnet_device* device, const device_report& report,
             const golden_program& program)
      : t_(t),
        device_(device),
        report_(report),
        golden_(program),
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
    s.n_sequences = tokens;
    s.program = program_.get();
    s.kv_pool = pool_.get();
    s.signal_value = ++timeline_;
    constexpr uint64_t forever = std::numeric_limits<uint64_t>::max();
    uint64_t reached = 0;
    return call("queue_submit",
                [&](auto* err) { return t_.queue_submit(queue_.get(), &s, err); }) &&
           call("queue_wait",
                [&](auto* err) { return t_.queue_wait(queue_.get(), timeline_, forever, err); }) &&
           call("queue_poll",
                [&](auto* err) { return t_.queue_poll(queue_.get(), &reached, err); }) &&
           sane("queue_poll", bitnet_wrong_timeline(reached, timeline_));
  }

  // The first wrong number in words, "" if all are right; nothing if a call failed.
  std::optional<std::string> run(uint32_t tokens) {
    std::fill_n(static_cast<float*>(logits_), std::size_t{golden_tokens} * golden_.columns,
                std::numeric_limits<float>::quiet_NaN());
    if (!step(tokens)) return std::nullopt;
    for (uint32_t t = 0; t < tokens; ++t)
      for (uint32_t i = 0; i < golden_.columns; ++i) {
        const float found =
            static_cast<const float*>(logits_)[std::size_t{t} * golden_.columns + i];
        const double expected = golden_.expected(t, i);
        if (static_cast<double>(found) == expected) continue;
        return fmt::format("row {} of token {} of {} is {}, not {}", i, t, tokens, found,
                           static_cast<int64_t>(expected));
      }
    return "";
  }

  // Ternary products in a second of the quickest step; 0 if one failed.
  uint64_t products_per_s() {
    using watch = std::chrono::steady_clock;
    constexpr auto enough = std::chrono::milliseconds(2);
    constexpr int most_steps = 64;
    auto best = watch::duration::max();
    const auto end = watch::now() + enough;
    for (int i = 0; i < 2 || (i < most_steps && watch::now() < end); ++i) {
      const auto begin = watch::now();
      if (!step(1)) return 0;
      best = std::min(best, watch::now() - begin);
    }
    const double seconds = std::max(std::chrono::duration<double>(best).count(), 1e-9);
    return static_cast<uint64_t>(double(golden_.weights.back().columns) * golden_.columns /
                                 seconds);
  }

  // A kernel among these that this program computes with; "" if there is none.
  std::string computes_with(const std::vector<std::string>& some) {
    for (const bitnet_kernel_stat& one : counted())
      if (const std::string id = plugin::printable_array(one.id);
          one.calls != 0 && std::ranges::find(some, id) != some.end())
        return id;
    return "";
  }

  // What the plugin counted for the tested op.
  std::vector<std::string> ran() {
    const std::vector<bitnet_kernel_stat> stats = counted();
    // Of the ops that the program is about; of those behind them where a plugin runs the body.
    std::vector<std::string> of_them, others;
    for (const bitnet_kernel_stat& one : stats) {
      if (one.calls == 0) continue;
      if (std::ranges::find(golden_.blamed, one.op) != golden_.blamed.end())
        of_them.push_back(plugin::printable_array(one.id));
      else if (one.op != BITNET_OP_EMBED_GATHER && one.op != BITNET_OP_GATHER_ROWS)
        others.push_back(plugin::printable_array(one.id));
    }
    return of_them.empty() ? others : of_them;
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
  // What answers.h says of the answer of a call.
  bool sane(const char* name, const char* wrong) {
    if (wrong != nullptr) trouble_ = {name, BITNET_OK, wrong};
    return wrong == nullptr;
  }
  template <class Object, class Call>
  bool take(const char* name, handle<Object>& to, Call make) {
    Object* raw = nullptr;
    if (!call(name, [&](auto* err) { return make(&raw, err); })) return false;
    to.reset(raw);
    return sane(name, bitnet_wrong_handle(raw));
  }

  std::vector<bitnet_kernel_stat> counted() {
    uint32_t count = 64;
    std::vector<bitnet_kernel_stat> stats(count);
    for (bitnet_kernel_stat& s : stats) s.struct_size = sizeof s;
    if (!call("program_stats", [&](auto* err) {
          return t_.program_stats(program_.get(), stats.data(), sizeof(bitnet_kernel_stat), &count,
                                  err);
        }))
      return {};
    if (!sane("program_stats", bitnet_wrong_count(count))) return {};
    stats.resize(std::min<std::size_t>(count, stats.size()));
    return stats;
  }

  static bitnet_tensor_desc describe(const golden_weight& w) {
    bitnet_tensor_desc d{};
    d.struct_size = sizeof d;
    d.format = w.format;
    d.rank = w.rank;
    d.ne[0] = w.columns;
    d.ne[1] = w.rows;
    d.ne[2] = d.ne[3] = 1;
    d.data_bytes = w.bytes.size();
    if (w.format == BITNET_FORMAT_TERNARY2) {
      d.n_scales = 1;
      d.scales = &unit_scale;
    }
    d.name = {"self-test", 9};
    return d;
  }

  bool upload() {
    std::vector<bitnet_tensor_desc> descs;
    descs.reserve(golden_.weights.size());
    for (const golden_weight& w : golden_.weights) descs.push_back(describe(w));
    if (!take("weights_create", weights_, [&](auto** out, auto* err) {
          return t_.weights_create(device_, descs.data(), sizeof(bitnet_tensor_desc),
                                   static_cast<uint32_t>(descs.size()), out, err);
        }))
      return false;
    for (uint32_t i = 0; i < golden_.weights.size(); ++i) {
      const std::string& data = golden_.weights[i].bytes;
      bitnet_weight_plan plan{};
      plan.struct_size = sizeof plan;
      if (!call("weight_plan",
                [&](auto* err) { return t_.weight_plan(device_, &descs[i], &plan, err); }) ||
          !sane("weight_plan", bitnet_wrong_weight_plan(&plan)))
        return false;
      if (!call("weight_write",
                [&](auto* err) {
                  return t_.weight_write(weights_.get(), i, 0, data.data(), data.size(), err);
                }) ||
          !call("weight_seal", [&](auto* err) { return t_.weight_seal(weights_.get(), i, err); }))
        return false;
    }
    return true;
  }

  bool build() {
    const bitnet_graph graph{sizeof graph,
                             sizeof(bitnet_value),
                             sizeof(bitnet_op),
                             static_cast<uint32_t>(golden_.values.size()),
                             static_cast<uint32_t>(golden_.ops.size()),
                             golden_.logits,
                             golden_.values.data(),
                             golden_.ops.data()};
    bitnet_program_options o{};
    o.struct_size = sizeof o;
    o.max_tokens = o.max_outputs = o.max_sequences = golden_tokens;
    o.max_blocks = 1;
    o.block_tokens = golden_block_tokens;
    o.n_buckets = static_cast<uint32_t>(std::size(golden_steps));
    o.buckets = golden_steps;
    // A step names a pool even where a program has no attention.
    bitnet_kv_config kv{};
    kv.struct_size = sizeof kv;
    const bool holds_f16 = (report_.info.kv_dtypes & 1U << BITNET_DTYPE_F16) != 0;
    kv.dtype_k = kv.dtype_v = holds_f16 ? BITNET_DTYPE_F16 : BITNET_DTYPE_F32;
    kv.n_layers = 1;
    kv.n_kv_heads = golden_kv_heads;
    kv.n_blocks = golden_tokens;
    kv.head_dim = golden_head_dim;
    kv.block_tokens = golden_block_tokens;
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
      void* again = nullptr;
      const uint64_t bytes = elements * sizeof(int32_t);
      if (!take(
              "buffer_create", buffer,
              [&](auto** out, auto* err) { return t_.buffer_create(device_, bytes, out, err); }) ||
          !call("buffer_map",
                [&](auto* err) { return t_.buffer_map(buffer.get(), &mapped, err); }) ||
          !call("buffer_map",
                [&](auto* err) { return t_.buffer_map(buffer.get(), &again, err); }) ||
          !sane("buffer_map",
                bitnet_wrong_mapping(mapped, again, bytes, report_.info.buffer_alignment_bytes)))
        return false;
      for (const auto& [place, size] : places_)
        if (!sane("buffer_map", bitnet_wrong_overlap(place, size, mapped, bytes))) return false;
      places_.emplace_back(mapped, bytes);
      for (uint64_t i = 0; i < elements; ++i)
        static_cast<int32_t*>(mapped)[i] = static_cast<int32_t>(i) * step;
      logits_ = mapped;  // of the last one made
      slot = buffer.get();
      buffers_.push_back(std::move(buffer));
      return true;
    };
    // Each token is the first of its own sequence, whose only block has its number.
    return make(bound.tokens, golden_tokens, 1) && make(bound.positions, golden_tokens, 0) &&
           make(bound.sequences, golden_tokens, 1) &&
           make(bound.slots, golden_tokens, golden_block_tokens) &&
           make(bound.block_tables, golden_tokens, 1) &&
           make(bound.output_rows, golden_tokens, 1) &&
           make(bound.logits, uint64_t{golden_tokens} * golden_.columns, 0) &&
           call("program_bind",
                [&](auto* err) { return t_.program_bind(program_.get(), &bound, err); });
  }

  const table& t_;
  bitnet_device* device_;
  const device_report& report_;
  const golden_program& golden_;
  handle<bitnet_weights> weights_;
  handle<bitnet_kv_pool> pool_;
  std::vector<handle<bitnet_buffer>> buffers_;
  std::vector<std::pair<const void*, uint64_t>> places_;  // of the buffers: address, bytes
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

// Does the device list all that the program needs? A composite stands for its body.
bool is_claimed(const device_report& d, const golden_program& program) {
  for (std::size_t i = 0; i < program.ops.size(); i += 1 + program.ops[i].body_count) {
    const bitnet_op& o = program.ops[i];
    uint32_t format =
        o.weights[0] == BITNET_NONE ? BITNET_FORMAT_NONE : program.weights[o.weights[0]].format;
    if (o.op >= BITNET_OP_FIRST_COMPOSITE)
      format = o.op == BITNET_OP_LM_HEAD ? BITNET_FORMAT_F16 : BITNET_FORMAT_TERNARY2;
    if (!lists(d, o.op, format)) return false;
  }
  return true;
}

plugin::defect failed(const std::string& where, const trouble& t) {
  if (t.status == BITNET_OK)
    return {code::probe_answer, BITNET_REJECTED,
            fmt::format("self-test of {}: {}() {}", where, t.call, t.what), ""};
  return {code::probe_failed, BITNET_UNAVAILABLE,
          fmt::format("self-test of {}: {}() failed: {}", where, t.call, t.what), ""};
}

plugin::checked<void> test_device(const table& t, uint32_t index, const device_report& report,
                                  self_test_result& out) {
  bitnet_error err = plugin::blank_error();
  bitnet_device* raw = nullptr;
  if (const auto s = t.device_open(t.self, index, &raw, &err); s != BITNET_OK)
    return std::unexpected(
        failed(fmt::format("device {}", index), {"device_open", s, plugin::describe(s, err)}));
  const handle<bitnet_device> device(raw, t.device_close);
  if (const char* wrong = bitnet_wrong_handle(raw))
    return std::unexpected(
        failed(fmt::format("device {}", index), {"device_open", BITNET_OK, wrong}));
  for (const golden_program& f : golden_programs()) {
    if (!is_claimed(report, f)) continue;
    golden_run one(t, device.get(), report, f);
    std::optional<std::string> wrong;
    if (one.prepare())
      for (const uint32_t tokens : golden_steps)
        if (wrong = one.run(tokens); !wrong || !wrong->empty()) break;
    const std::string head = (out.summary.empty() ? "" : "; ") + f.name;
    if (!wrong) {
      if (one.failed().status != BITNET_UNSUPPORTED)
        return std::unexpected(failed(f.name, one.failed()));
      out.summary += fmt::format("{}: not tested, {} says unsupported", head, one.failed().call);
      continue;
    }
    // Nothing can be said of the ops of a program that computes with another one's wrong kernel.
    if (const std::string known = wrong->empty() ? "" : one.computes_with(out.wrong);
        !known.empty()) {
      out.summary += fmt::format("{}: not judged, it computes with {}", head, known);
      continue;
    }
    out.summary += head + (wrong->empty() ? ": right" : ": " + *wrong);
    if (wrong->empty()) continue;
    const auto blamed = one.ran();
    if (blamed.empty())
      return plugin::reject(code::probe_self_test, f.name +
                                                       " gives wrong results and counts no "
                                                       "kernel: " +
                                                       *wrong);
    for (const std::string& id : blamed)
      if (std::ranges::find(out.wrong, id) == out.wrong.end()) out.wrong.push_back(id);
  }
  const golden_program timed = timed_program();
  if (out.wrong.empty() && is_claimed(report, timed))
    if (golden_run one(t, device.get(), report, timed); one.prepare())
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
