#include "probe/self_test.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compute/steps.hpp"
#include "plugin/codes/text.hpp"
#include "probe/crash.hpp"
#include "probe/golden.hpp"

namespace bitnet::probe {
namespace {

using plugin::code;
using table = bitnet_backend_v0;

// A step of a program: so many tokens, the first of which has this position.
struct tested_step {
  uint32_t tokens, first = 0;
};
// All steps of a program, in their order. Kernels may treat steps of one token and of a few
// differently, so that these read a long context once more. Single tokens see one position, a whole
// block, one position more, and nearly all. A state goes on from step to step, and counts as zeros
// when the sequence begins again.
std::vector<tested_step> steps_of(const golden_program& program) {
  std::vector<tested_step> out;
  constexpr uint32_t few = golden_tokens;
  if (program.state_elements != 0)
    return {{few, 0}, {1, few}, {few, few + 1}, {1, 2 * few + 1}, {1, 0}, {few, 1}};
  for (const uint32_t tokens : golden_steps)
    if (program.positions == 0) out.push_back({tokens});
  for (uint32_t first = 0; first < program.positions; first += golden_prompt_tokens)
    out.push_back({golden_prompt_tokens, first});
  if (program.positions == 0) return out;
  for (const uint32_t position :
       {0U, golden_block_tokens - 1, golden_block_tokens, program.positions - 3})
    out.push_back({1, position});
  out.push_back({golden_tokens, program.positions - golden_tokens});
  return out;
}

// Of a pool; the sequence has the last one.
constexpr uint32_t n_states = 2;

// Runs one program on one device.
class golden_run {
 public:
  golden_run(const compute::device& d, const device_report& report, const golden_program& program)
      : device_(d), report_(report), golden_(program) {}

  bool prepare() {
    if (!upload() || !build()) return false;
    fill_facts(0);
    return true;
  }

  bool step(uint32_t tokens) {
    bitnet_step s{};
    s.n_tokens = s.n_outputs = s.n_sequences = tokens;
    if (golden_.positions != 0) s.n_sequences = 1;
    s.top_logits = golden_.largest;
    s.binding = binding_.get();
    constexpr uint64_t forever = std::numeric_limits<uint64_t>::max();
    return done(queue_.submit(s)) && done(queue_.wait(forever));
  }

  // Describes the first wrong number; "" if all are right; nullopt if a call failed.
  std::optional<std::string> run(tested_step what) {
    before_ = counted();
    fill_facts(what.first);
    std::fill_n(logits_, std::size_t{what.tokens} * golden_.columns,
                std::numeric_limits<float>::quiet_NaN());
    for (uint32_t t = 0; listed_ != nullptr && t < what.tokens; ++t) listed_[t].count = BITNET_NONE;
    if (!step(what.tokens)) return std::nullopt;
    for (uint32_t t = 0; t < what.tokens; ++t) {
      const std::string wrong = golden_.largest == 0 ? wrong_row(what, t) : wrong_list(what, t);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  // Ternary products per second in the fastest step with so many tokens; 0 if a step failed.
  uint64_t products_per_s(uint32_t tokens, std::chrono::milliseconds enough) {
    using watch = std::chrono::steady_clock;
    constexpr int most_steps = 64;
    auto best = watch::duration::max();
    const auto end = watch::now() + enough;
    for (int i = 0; i < 2 || (i < most_steps && watch::now() < end); ++i) {
      const auto begin = watch::now();
      if (!step(tokens)) return 0;
      best = std::min(best, watch::now() - begin);
    }
    const double seconds = std::max(std::chrono::duration<double>(best).count(), 1e-9);
    return static_cast<uint64_t>(static_cast<double>(products_of_a_token()) * tokens / seconds);
  }
  [[nodiscard]] uint64_t products_of_a_token() const {
    uint64_t sum = 0;
    for (const golden_weight& w : golden_.weights)
      if (w.format == BITNET_FORMAT_TERNARY2) sum += uint64_t{w.columns} * w.rows;
    return sum;
  }

  // Returns one of these kernels that this program uses; "" if none.
  std::string computes_with(const std::vector<wrong_result>& some) {
    for (const bitnet_kernel_stat& one : counted()) {
      const std::string id = plugin::printable_array(one.id);
      const auto blames = [&](const wrong_result& w) {
        return std::ranges::find(w.kernels, id) != w.kernels.end();
      };
      if (one.calls != 0 && std::ranges::any_of(some, blames)) return id;
    }
    return "";
  }

  // Kernels that the plugin counted in the last step for the tested ops, in the order of these; or
  // kernels of other ops, if a plugin runs the body.
  std::vector<std::string> ran() {
    const std::vector<bitnet_kernel_stat> stats = counted();
    std::vector<std::string> of_them, others;
    const auto is_new = [&](const bitnet_kernel_stat& one) {
      return one.calls != calls_before(one);
    };
    for (const uint32_t op : golden_.blamed)
      for (const bitnet_kernel_stat& one : stats)
        if (one.op == op && is_new(one)) of_them.push_back(plugin::printable_array(one.id));
    for (const bitnet_kernel_stat& one : stats)
      if (one.op != BITNET_OP_EMBED_GATHER && one.op != BITNET_OP_GATHER_ROWS && is_new(one))
        others.push_back(plugin::printable_array(one.id));
    return of_them.empty() ? others : of_them;
  }

  [[nodiscard]] const compute::trouble& failed() const { return trouble_; }

 private:
  std::string wrong_number(tested_step of, uint32_t t, uint32_t i, float found,
                           double expected) const {
    if (std::abs(static_cast<double>(found) - expected) <= golden_.allowed * std::abs(expected))
      return "";
    return fmt::format("row {} of token {} of {} is {}, not {:.9g}", i, of.first + t, of.tokens,
                       found, expected);
  }
  std::string wrong_row(tested_step of, uint32_t t) const {
    const float* const row = logits_ + std::size_t{t} * golden_.columns;
    for (uint32_t i = 0; i < golden_.columns; ++i)
      if (std::string wrong = wrong_number(of, t, i, row[i], golden_.expected(of.first + t, i));
          !wrong.empty())
        return wrong;
    return "";
  }
  // A row has the largest logits and what equals the last of these: in its list, or else among the
  // logits, where the others may be -INFINITY.
  std::string wrong_list(tested_step of, uint32_t t) const {
    const float* row = logits_ + std::size_t{t} * golden_.columns;
    constexpr float absent = -std::numeric_limits<float>::infinity();
    std::vector<float> found(golden_.columns, absent);
    if (const bitnet_largest& list = listed_[t]; list.count <= BITNET_MOST_LARGEST) {
      for (uint32_t i = 0; i < list.count; ++i) {
        const auto id = static_cast<uint32_t>(list.ids[i]);
        if (id >= golden_.columns)
          return fmt::format("the list of token {} of {} has the id {}", t, of.tokens, list.ids[i]);
        found[id] = list.logits[i];
      }
      row = found.data();
    }
    std::vector<double> all(golden_.columns);
    for (uint32_t i = 0; i < golden_.columns; ++i) all[i] = golden_.expected(of.first + t, i);
    std::vector<double> sorted = all;
    const auto last = sorted.begin() + (golden_.largest - 1);
    std::ranges::nth_element(sorted, last, std::greater());
    for (uint32_t i = 0; i < golden_.columns; ++i)
      if (row[i] != absent || all[i] >= *last)
        if (std::string wrong = wrong_number(of, t, i, row[i], all[i]); !wrong.empty())
          return wrong;
    return "";
  }
  [[nodiscard]] uint64_t calls_before(const bitnet_kernel_stat& now) const {
    for (const bitnet_kernel_stat& one : before_)
      if (plugin::printable_array(one.id) == plugin::printable_array(now.id)) return one.calls;
    return 0;
  }

  bool done(compute::attempt<void> made) {
    if (!made) trouble_ = std::move(made.error());
    return made.has_value();
  }
  template <class Object>
  bool keep(Object& to, compute::attempt<Object> made) {
    if (!made) trouble_ = std::move(made.error());
    if (made) to = std::move(*made);
    return made.has_value();
  }

  std::vector<bitnet_kernel_stat> counted() {
    auto stats = program_.stats();
    if (!stats) trouble_ = std::move(stats.error());
    return stats ? std::move(*stats) : std::vector<bitnet_kernel_stat>{};
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
      d.scale_group = w.group;
      d.n_scales = w.factors.size();
      d.scales = w.factors.data();
    }
    d.name = {"self-test", 9};
    return d;
  }

  bool upload() {
    std::vector<bitnet_tensor_desc> descs;
    descs.reserve(golden_.weights.size());
    for (const golden_weight& w : golden_.weights) descs.push_back(describe(w));
    if (!keep(weights_, compute::weights::create(device_, descs))) return false;
    for (uint32_t i = 0; i < golden_.weights.size(); ++i) {
      const std::string& data = golden_.weights[i].bytes;
      if (const auto plan = compute::plan(device_, descs[i]); !plan) {
        trouble_ = plan.error();
        return false;
      }
      if (!done(weights_.write(i, 0, std::as_bytes(std::span(data)))) || !done(weights_.seal(i)))
        return false;
    }
    return true;
  }

  bool build() {
    bitnet_program_options o{};
    o.struct_size = sizeof o;
    const uint32_t steps[] = {1, golden_.tokens};
    o.max_tokens = o.max_outputs = o.max_sequences = golden_.tokens;
    if (golden_.positions != 0) o.max_sequences = 1;
    o.max_blocks = std::max(golden_.positions / golden_block_tokens, 1U);
    o.block_tokens = golden_block_tokens;
    o.n_buckets = static_cast<uint32_t>(std::size(steps));
    o.buckets = steps;
    bitnet_kv_config kv{};
    kv.struct_size = sizeof kv;
    const bool holds_f16 = (report_.info.kv_dtypes & 1U << BITNET_DTYPE_F16) != 0;
    kv.dtype_k = kv.dtype_v = holds_f16 ? BITNET_DTYPE_F16 : BITNET_DTYPE_F32;
    kv.n_layers = 1;
    kv.n_kv_heads = golden_kv_heads;
    kv.n_blocks = std::max(golden_.tokens, o.max_blocks);
    kv.head_dim_k = kv.head_dim_v = golden_head_dim;
    kv.block_tokens = golden_block_tokens;
    if (golden_.state_elements != 0) kv.n_states = n_states;
    kv.state_elements = golden_.state_elements;
    bitnet_weights* const weights = weights_.get();
    auto pool = compute::make_pool(device_, kv);
    if (!pool) trouble_ = std::move(pool.error());
    if (!pool) return false;
    pool_ = std::move(*pool);
    return keep(program_, compute::program::build(device_, golden_.graph, {&weights, 1}, o)) &&
           keep(binding_,
                compute::binding::make(device_, program_, golden_.graph, o, pool_.get())) &&
           keep(queue_, compute::queue::make(device_));
  }

  // Each token is the first of its own sequence, which has one block of the same number; or they
  // follow each other in one sequence, from position `first` on.
  void fill_facts(uint32_t first) {
    const bool is_one = golden_.positions != 0;
    const std::pair<uint32_t, int32_t> steps[] = {
        {BITNET_PORT_TOKENS, 1},
        {BITNET_PORT_POSITIONS, is_one ? 1 : 0},
        {BITNET_PORT_SEQUENCES, is_one ? 0 : 1},
        {BITNET_PORT_SLOTS, is_one ? 1 : static_cast<int32_t>(golden_block_tokens)},
        {BITNET_PORT_OUTPUT_ROWS, 1},
    };
    for (const auto& [role, apart] : steps)
      if (auto* to = binding_.of<int32_t>(role)) {
        const bool begins_at_zero = apart == 0 || role == BITNET_PORT_OUTPUT_ROWS;
        const auto begin = static_cast<int32_t>(begins_at_zero ? 0 : first);
        for (int32_t i = 0; i < static_cast<int32_t>(golden_.tokens); ++i)
          to[i] = begin + i * apart;
      }
    const uint32_t blocks = is_one ? golden_.positions / golden_block_tokens : golden_.tokens;
    if (auto* to = binding_.of<int32_t>(BITNET_PORT_BLOCK_TABLES))
      for (uint32_t i = 0; i < blocks; ++i) to[i] = static_cast<int32_t>(i);
    if (auto* to = binding_.of<int32_t>(BITNET_PORT_STATES)) *to = n_states - 1;
    logits_ = binding_.of<float>(BITNET_PORT_LOGITS);
    listed_ = binding_.of<bitnet_largest>(BITNET_PORT_LARGEST);
  }

  const compute::device& device_;
  const device_report& report_;
  const golden_program& golden_;
  // In this order: each is destroyed before the objects that it was made from.
  compute::weights weights_;
  compute::handle<bitnet_kv_pool> pool_{nullptr, device_.table().kv_pool_destroy};
  compute::program program_;
  compute::binding binding_;
  compute::queue queue_;
  float* logits_ = nullptr;
  bitnet_largest* listed_ = nullptr;        // nullptr if the program has none
  std::vector<bitnet_kernel_stat> before_;  // the last step
  compute::trouble trouble_;
};

bool lists(const device_report& d, uint32_t op, uint32_t format) {
  return std::ranges::any_of(d.kernels, [&](const bitnet_kernel_info& k) {
    return k.op == op && k.precision == BITNET_PRECISION_F32 &&
           (k.format == format || k.format == BITNET_FORMAT_NONE || format == BITNET_FORMAT_NONE);
  });
}

// Whether the device lists all ops of the program. The body counts in place of a composite that is
// not listed if largest logits are tested: they are the head's, whether or not it is one kernel.
bool is_claimed(const device_report& d, const golden_program& program) {
  if (program.largest != 0 && (d.info.logits_flags & BITNET_LOGITS_LARGEST) == 0) return false;
  for (std::size_t i = 0; i < program.graph.ops.size(); ++i) {
    const bitnet_op& o = program.graph.ops[i];
    uint32_t format =
        o.weights[0] == BITNET_NONE ? BITNET_FORMAT_NONE : program.weights[o.weights[0]].format;
    if (o.op >= BITNET_OP_FIRST_COMPOSITE)
      format = o.op == BITNET_OP_LM_HEAD ? BITNET_FORMAT_F16 : BITNET_FORMAT_TERNARY2;
    if (lists(d, o.op, format))
      i += o.body_count;
    else if (program.largest == 0 || o.body_count == 0)
      return false;
  }
  return true;
}

// Of the kernels for the tested op, the first one listed runs.
std::string tested_kernel(const device_report& d, const golden_program& program) {
  for (const bitnet_kernel_info& k : d.kernels)
    if (k.precision == BITNET_PRECISION_F32 &&
        std::ranges::find(program.blamed, k.op) != program.blamed.end() &&
        (k.format == BITNET_FORMAT_NONE ||
         std::ranges::find(program.weights, k.format, &golden_weight::format) !=
             program.weights.end()))
      return fmt::format("{} (kernel {})", program.name, plugin::printable_array(k.id));
  return program.name;
}

// Facts for a report to the driver's maker: shape and driver version.
std::string circumstances(const device_report& d, const golden_program& program) {
  const golden_weight& last = program.weights.back();
  const std::string driver = plugin::printable_array(d.info.driver_version);
  return fmt::format("{} by {}{}{}", last.columns, last.rows, driver.empty() ? "" : ", driver ",
                     driver);
}

plugin::defect failed(const std::string& where, const compute::trouble& t) {
  if (t.status == BITNET_OK)
    return {code::probe_answer, BITNET_REJECTED,
            fmt::format("self-test of {}: {}() {}", where, t.slot, t.reason), ""};
  return {code::probe_failed, BITNET_UNAVAILABLE,
          fmt::format("self-test of {}: {}() failed: {} (status {})", where, t.slot, t.reason,
                      t.status),
          ""};
}

// Sizes and times are chosen so that a processor needs a few milliseconds, and a faster device at
// most a quarter of a second per step.
product_rates measure(const compute::device& device, const device_report& report) {
  using namespace std::chrono_literals;
  constexpr auto short_time = 2ms, long_time = 50ms;
  constexpr double longest_step_s = 0.25;
  product_rates out;
  const golden_program small = timed_program();
  if (!is_claimed(report, small)) return out;
  if (golden_run one(device, report, small); one.prepare())
    out.small = one.products_per_s(1, short_time);
  // CPU devices never count as the same hardware, so there is nothing to compare.
  if (out.small == 0 || report.info.device_class == BITNET_DEVICE_CPU) return out;
  if (static_cast<double>(large_timed_products * timed_tokens) >
      longest_step_s * static_cast<double>(out.small))
    return out;
  const golden_program large = large_timed_program();
  golden_run one(device, report, large);
  if (!one.prepare()) return out;
  out.token = one.products_per_s(1, long_time);
  out.prompt = one.products_per_s(timed_tokens, long_time);
  return out;
}

plugin::checked<void> test_device(const table& t, uint32_t index, const device_report& report,
                                  self_test_result& out) {
  const auto device = compute::device::open(t, index, report.info);
  if (!device) return std::unexpected(failed(fmt::format("device {}", index), device.error()));
  out.status[index] = device->status();  // asked before the tests, which would show in it
  for (const golden_program& f : golden_programs()) {
    if (!is_claimed(report, f)) continue;
    const running_test now(tested_kernel(report, f));
    golden_run one(*device, report, f);
    std::optional<std::string> wrong;
    if (one.prepare())
      for (const tested_step step : steps_of(f))
        if (wrong = one.run(step); !wrong || !wrong->empty()) break;
    const std::string label = fmt::format("{}{}", out.summary.empty() ? "" : "; ", f.name);
    if (!wrong) {
      if (one.failed().status != BITNET_UNSUPPORTED)
        return std::unexpected(failed(f.name, one.failed()));
      out.summary += fmt::format("{}: not tested, {} says unsupported", label, one.failed().slot);
      continue;
    }
    // A program that uses a wrong kernel of another op shows nothing about its own ops.
    if (const std::string known = wrong->empty() ? "" : one.computes_with(out.wrong);
        !known.empty()) {
      out.summary += fmt::format("{}: not judged, it computes with {}", label, known);
      continue;
    }
    out.summary += fmt::format("{}: {}", label, wrong->empty() ? "right" : *wrong);
    if (wrong->empty()) continue;
    const std::string what = fmt::format("{} ({})", *wrong, circumstances(report, f));
    const auto blamed = one.ran();
    if (blamed.empty())
      return plugin::reject(
          code::probe_self_test,
          fmt::format("{} gives wrong results and counts no kernel: {}", f.name, what));
    out.wrong.push_back({fmt::format("{}: {}", f.name, what), blamed});
  }
  if (out.wrong.empty()) out.rates[index] = measure(*device, report);
  return {};
}

}  // namespace

plugin::checked<self_test_result> run_self_test(const plugin::backend& b,
                                                const std::vector<device_report>& devices) {
  self_test_result out;
  out.rates.resize(devices.size());
  out.status.resize(devices.size());
  for (uint32_t i = 0; i < devices.size(); ++i)
    if (auto fine = test_device(b.table(), i, devices[i], out); !fine)
      return std::unexpected(std::move(fine.error()));
  if (out.summary.empty()) out.summary = "nothing that whole numbers can test is claimed";
  return out;
}

}  // namespace bitnet::probe
