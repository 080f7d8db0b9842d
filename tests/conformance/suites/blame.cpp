#include "suites/blame.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/channel.hpp"
#include "model/formats.hpp"
#include "reference/act_quant.hpp"
#include "reference/evaluate.hpp"
#include "reference/grouped.hpp"
#include "reference/names.hpp"

namespace bitnet::conformance {
namespace {

constexpr suspect embedding = {BITNET_OP_EMBED_GATHER, BITNET_FORMAT_F32};
constexpr suspect gathering = {BITNET_OP_GATHER_ROWS, BITNET_FORMAT_NONE};
constexpr suspect quantiser = {BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE};
constexpr suspect product = {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2};
constexpr suspect group_quantiser = {BITNET_OP_ACT_QUANT_I8_GROUPED, BITNET_FORMAT_NONE};
constexpr suspect group_product = {BITNET_OP_LINEAR_TERNARY_GROUPED, BITNET_FORMAT_TERNARY2};

bool has_op(const op_case& c, uint32_t id) {
  return std::ranges::any_of(c.graph.ops, [&](const bitnet_op& op) { return op.op == id; });
}

// A row of an f32 table, or what another format has there but for a rounding.
float table_element(const model_tensor& t, uint64_t row, uint64_t i) {
  const auto k = static_cast<uint64_t>(t.desc.ne[0]);
  const double v = element(t.desc.format, t.data.data() + row * row_bytes(t.desc.format, k), i);
  if (t.desc.format != BITNET_FORMAT_TERNARY2) return static_cast<float>(v);
  const uint64_t group = t.desc.scale_group;
  return static_cast<float>(v) * t.scales[group == 0 ? 0 : (row * k + i) / group];
}

// Another program on the tokens of a case.
op_case beside(const op_case& c) {
  op_case out;
  out.tokens = c.tokens;
  out.block_tokens = c.block_tokens;
  out.max_blocks = c.max_blocks;
  return out;
}

// Which rows of a table leave rightly through these outputs; nothing if it cannot run.
std::vector<bool> right_copies(opened_device& device, const op_case& c, const model_tensor& table,
                               const std::vector<int32_t>& outputs, uint32_t flags) {
  op_case copy = beside(c);
  copy.outputs = outputs;
  copy.graph.tensors = {table};
  const auto width = static_cast<uint64_t>(table.desc.ne[0]);
  const uint32_t x = copy.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, table.desc.ne[0]);
  copy.graph.op(BITNET_OP_EMBED_GATHER, {}, {x}, {0});
  output_rows(copy.graph, x);
  copy.expected.assign(outputs.size() * width, 0);
  copy.allowed = copy.expected;
  std::vector<float> found;
  run_case(device, copy, flags, &found);
  std::vector<bool> right(found.empty() ? 0 : outputs.size(), true);
  for (uint64_t i = 0; i < found.size(); ++i) {
    const auto token = static_cast<uint64_t>(c.tokens[static_cast<uint64_t>(outputs[i / width])]);
    const float expected = table_element(table, token, i % width);
    const float rounding = table.desc.format == BITNET_FORMAT_F32 ? 0 : 1e-6f;
    if (!(std::fabs(found[i] - expected) <= rounding * std::fabs(expected)) &&
        !(found[i] == expected))  // infinities
      right[i / width] = false;
  }
  return right;
}

// What brings rows in and out, if that is wrong already. Once in order, once with the outputs
// backwards, once with the tokens: a fault that goes with the output is GATHER_ROWS', which knows
// no ids; one that goes with the id is the embedding's; of one that goes with neither it may be
// either.
std::vector<suspect> wrong_scaffold(opened_device& device, const op_case& c, uint32_t flags) {
  const uint64_t n = c.tokens.size();
  std::vector<int32_t> order(n), backwards(n);
  for (uint64_t t = 0; t < n; ++t) {
    order[t] = static_cast<int32_t>(t);
    backwards[t] = static_cast<int32_t>(n - 1 - t);
  }
  for (const bitnet_op& op : c.graph.ops) {
    if (op.op != BITNET_OP_EMBED_GATHER) continue;
    const model_tensor& table = c.graph.tensors[op.weights[0]];
    const std::vector<bool> one = right_copies(device, c, table, order, flags);
    const std::vector<bool> other = right_copies(device, c, table, backwards, flags);
    const auto wrong = [](const std::vector<bool>& some) {
      return std::ranges::find(some, false) != some.end();
    };
    if (one.size() != n || other.size() != n || (!wrong(one) && !wrong(other))) continue;
    op_case turned = c;
    std::ranges::reverse(turned.tokens);
    const std::vector<bool> ids = right_copies(device, turned, table, order, flags);
    bool by_output = true, by_token = true, by_id = ids.size() == n;
    for (uint64_t t = 0; t < n; ++t) {
      by_output &= one[t] == other[t];
      by_token &= one[t] == other[n - 1 - t];
      by_id = by_id && one[t] == ids[n - 1 - t];
    }
    const suspect embedding_op = {BITNET_OP_EMBED_GATHER, table.desc.format};
    if (by_output && !by_token) return {gathering};
    bool by_place = ids.size() == n;
    for (uint64_t t = 0; t < n && by_place; ++t) by_place = one[t] == ids[t];
    if (by_id && !by_place) return {embedding_op};
    return {embedding_op, gathering};
  }
  return {};
}

// Columns whose codes are looked at: all, or of wide rows of many tokens the ends and some between.
std::vector<uint64_t> columns_of(uint64_t k, uint64_t tokens) {
  constexpr uint64_t most_products = 20'000'000, ends = 8, between = 16;
  std::vector<uint64_t> out;
  const bool all = k * k * tokens <= most_products || k <= 2 * ends + between;
  for (uint64_t i = 0; i < k; ++i)
    if (all || i < ends || i + ends >= k || i % (k / between) == 0) out.push_back(i);
  return out;
}

std::string names_of(const std::vector<suspect>& all, const char* between) {
  std::string out;
  for (const suspect& s : all) out += (out.empty() ? "" : between) + kernel_name(s.op, s.format);
  return out;
}

// What either quantiser has to give for a row; group 0: one scale, that was multiplied with.
struct codes_of_row {
  std::vector<int8_t> q;
  std::vector<float> scales;
};
codes_of_row right_codes(std::span<const float> x, uint64_t group) {
  if (group != 0) {
    grouped_codes out = act_quant_grouped(x, group);
    return {std::move(out.q), std::move(out.factors)};
  }
  quantised out = act_quant(x);
  return {std::move(out.q), {out.scale}};
}

// The quantiser or the product that shows its codes.
//
// How  Two products show each code twice: in order, and backwards with the other sign; some rows
//      are zero. Where the two agree on whole numbers that a code can be, and the zeros are zeros,
//      the codes are what they show. A product that is wrong shows no such codes, but for one: that
//      it leaves out columns looks as codes of 0 do.
class code_view {
 public:
  code_view(const op_case& c, const bitnet_op& quantise, const model_tensor& table)
      : case_(c),
        quantise_(quantise),
        table_(table),
        grouped_(quantise.op == BITNET_OP_ACT_QUANT_I8_GROUPED),
        k_(static_cast<uint64_t>(table.desc.ne[0])),
        group_(grouped_ ? static_cast<uint64_t>(quantise.ints[0]) : k_),
        columns_(columns_of(k_, c.tokens.size())) {
    for (uint64_t at = 0; at < k_ * static_cast<uint64_t>(table.desc.ne[1]); ++at)
      rows_.push_back(table_element(table, at / k_, at % k_));
  }

  // False: the device cannot show them, and nothing is known.
  bool look(opened_device& device, uint32_t flags) {
    for (std::vector<float>* to : {&scales_, &one_, &other_}) {
      op_case view = beside(case_);
      program(to == &scales_, to == &other_, view);
      run_case(device, view, flags, to);
      if (to->empty()) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<suspect> judge() const {
    findings found;
    for (uint64_t t = 0; t < case_.tokens.size(); ++t)
      if (std::vector<suspect> out = judge_row(t, found); !out.empty()) return out;
    if (!found.wrong_codes) return {of_sums()};
    if (found.only_zeros) return {of_codes(), of_sums()};
    return {of_codes()};
  }

 private:
  struct findings {
    bool wrong_codes = false, only_zeros = true;
  };
  static constexpr uint64_t zeros = 4;

  [[nodiscard]] suspect of_codes() const { return grouped_ ? group_quantiser : quantiser; }
  [[nodiscard]] suspect of_sums() const { return grouped_ ? group_product : product; }
  [[nodiscard]] uint64_t groups() const { return k_ / group_; }
  [[nodiscard]] uint64_t height() const { return columns_.size() + zeros; }

  void program(bool scale_only, bool backwards, op_case& out) const {
    const uint64_t n = columns_.size(), m = height();
    const int64_t width = table_.desc.ne[0];
    const uint32_t x = input_rows(out.graph, width, rows_);
    const uint32_t q = out.graph.value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, width);
    const uint32_t s =
        out.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, static_cast<int64_t>(groups()));
    out.graph.op(of_codes().op, {x}, {q, s}).ints[0] = quantise_.ints[0];
    out.expected.assign(case_.tokens.size() * (scale_only ? groups() : m), 0);
    out.allowed = out.expected;
    if (scale_only) return output_rows(out.graph, s);
    std::vector<int8_t> t(m * k_);
    for (uint64_t j = 0; j < n; ++j)
      t[(backwards ? m - 1 - j : j) * k_ + columns_[j]] = backwards ? -1 : 1;
    const auto rows = static_cast<int64_t>(m);
    const uint32_t y = out.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, rows);
    out.graph.op(
        of_sums().op, {q, s}, {y},
        {out.graph.tensor(BITNET_FORMAT_TERNARY2, width, rows, pack_ternary(t, k_, m), {1.0f})});
    output_rows(out.graph, y);
  }

  // The op that is wrong whatever the other rows say; none: `found` is what the row adds.
  std::vector<suspect> judge_row(uint64_t t, findings& found) const {
    const uint64_t n = columns_.size(), m = height();
    const auto row = static_cast<uint64_t>(case_.tokens[t]);
    const codes_of_row right =
        right_codes(std::span(rows_).subspan(row * k_, k_), grouped_ ? group_ : 0);
    bool may_be_anything = false;
    for (uint64_t g = 0; g < groups(); ++g) {
      const float s = right.scales[g];
      if (scales_[t * groups() + g] != s && !std::isnan(s)) return {of_codes()};
      may_be_anything |= !std::isfinite(s) || s == 0;
    }
    if (may_be_anything) return {};
    for (uint64_t j = 0; j < zeros; ++j)
      if (one_[t * m + n + j] != 0 || other_[t * m + j] != 0) return {of_sums()};
    for (uint64_t j = 0; j < n; ++j) {
      const float shown = one_[t * m + j], again = -other_[t * m + m - 1 - j];
      const float s = right.scales[columns_[j] / group_];
      const float code = std::nearbyint(grouped_ ? shown / s : shown * s);
      const bool possible =
          code >= -128 && code <= 127 && shown == (grouped_ ? code * s : code / s);
      if (!possible || shown != again) return {of_sums()};
      if (code == static_cast<float>(right.q[columns_[j]])) continue;
      found.wrong_codes = true;
      found.only_zeros &= code == 0;
    }
    return {};
  }

  const op_case& case_;
  const bitnet_op& quantise_;
  const model_tensor& table_;
  const bool grouped_;
  const uint64_t k_, group_;
  const std::vector<uint64_t> columns_;
  std::vector<float> rows_;
  std::vector<float> scales_, one_, other_;  // what the device answered
};

// The codes and scales of a case's rows as they leave by ports; nothing where the device has no
// such program.
struct seen_codes {
  std::vector<int8_t> q;
  std::vector<float> scales;
};
std::optional<seen_codes> codes_by_ports(opened_device& device, const op_case& c,
                                         const bitnet_op& quantise, const model_tensor& table,
                                         uint64_t groups, uint32_t flags) {
  model m;
  m.tensors = {table};
  m.logits = BITNET_NONE;
  const int64_t k = table.desc.ne[0];
  const uint32_t x = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  const uint32_t q = m.value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, k);
  const uint32_t s = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, static_cast<int64_t>(groups));
  m.op(BITNET_OP_EMBED_GATHER, {}, {x}, {0});
  m.op(quantise.op, {x}, {q, s}).ints[0] = quantise.ints[0];
  for (const uint32_t value : {q, s}) m.more_ports.push_back({BITNET_PORT_VALUE_OUT, value});
  runner_options o;
  o.opened = device.device;
  o.flags = flags;
  o.max_tokens = o.max_outputs = static_cast<uint32_t>(c.tokens.size());
  o.max_sequences = 1;
  o.max_blocks = static_cast<uint32_t>(c.tokens.size() / o.block_tokens + 1);
  o.n_blocks = o.max_blocks;
  try {
    runner r(device.table(), m, o);
    std::vector<token_in> in;
    for (const int32_t token : c.tokens) in.push_back({token, 0});
    r.run(in);
    const auto* codes = static_cast<const int8_t*>(r.more[0]);
    const auto* scales = static_cast<const float*>(r.more[1]);
    const uint64_t n = c.tokens.size();
    return seen_codes{{codes, codes + n * static_cast<uint64_t>(k)}, {scales, scales + n * groups}};
  } catch (const call_failed&) {
    return std::nullopt;
  }
}

// Whether they are the right ones of a case's rows. A row whose scale is no number, or infinite,
// may have any codes.
bool are_right(const seen_codes& seen, const op_case& c, const model_tensor& table,
               uint64_t group) {
  const auto k = static_cast<uint64_t>(table.desc.ne[0]), groups = group == 0 ? 1 : k / group;
  std::vector<float> row(k);
  for (uint64_t t = 0; t < c.tokens.size(); ++t) {
    for (uint64_t i = 0; i < k; ++i)
      row[i] = table_element(table, static_cast<uint64_t>(c.tokens[t]), i);
    const codes_of_row right = right_codes(row, group);
    for (uint64_t g = 0; g < groups; ++g) {
      const float s = right.scales[g];
      if (!std::isfinite(s) || s == 0) continue;
      if (seen.scales[t * groups + g] != s) return false;
      const uint64_t first = g * k / groups, last = (g + 1) * k / groups;
      for (uint64_t i = first; i < last; ++i)
        if (seen.q[t * k + i] != right.q[i]) return false;
    }
  }
  return true;
}

std::vector<suspect> quantiser_or_product(opened_device& device, const op_case& c, uint32_t flags) {
  const uint32_t op = has_op(c, BITNET_OP_ACT_QUANT_I8_GROUPED) ? group_quantiser.op : quantiser.op;
  const auto quantise = std::ranges::find(c.graph.ops, op, &bitnet_op::op);
  const auto embed =
      std::ranges::find(c.graph.ops, uint32_t{BITNET_OP_EMBED_GATHER}, &bitnet_op::op);
  if (quantise == c.graph.ops.end() || embed == c.graph.ops.end()) return {};
  const model_tensor& table = c.graph.tensors[embed->weights[0]];
  const uint64_t group = op == group_quantiser.op ? static_cast<uint64_t>(quantise->ints[0]) : 0;
  const uint64_t groups = group == 0 ? 1 : static_cast<uint64_t>(table.desc.ne[0]) / group;
  if (const auto seen = codes_by_ports(device, c, *quantise, table, groups, flags))
    return {are_right(*seen, c, table, group)
                ? suspect{op == group_quantiser.op ? group_product : product}
                : suspect{op == group_quantiser.op ? group_quantiser : quantiser}};
  code_view view(c, *quantise, table);
  return view.look(device, flags) ? view.judge() : std::vector<suspect>{};
}

// Those of some ops that are wrong in cases of their own. One that a case shows to be wrong acquits
// those that look the same in another case.
std::vector<suspect> wrong_by_themselves(opened_device& device, const std::vector<suspect>& some) {
  const bitnet_device_info about = device.info();
  std::vector<suspect> alone, together;
  for (const suspect& s : some)
    for (const op_case& c : cases_of(s.op, s.format, about.kv_dtypes, about.attention_flags)) {
      if (run_case(device, c, BITNET_PROGRAM_DETERMINISTIC).n_wrong == 0) continue;
      const std::vector<suspect> all = suspects_of(device, c, BITNET_PROGRAM_DETERMINISTIC);
      std::vector<suspect>& to = all.size() == 1 ? alone : together;
      for (const suspect& one : all)
        if (std::ranges::find(to, one) == to.end()) to.push_back(one);
    }
  return alone.empty() ? together : alone;
}

}  // namespace

std::string scaffold_missing(const opened_device& device, uint32_t op) {
  std::string out;
  const bool grouped = op == group_quantiser.op || op == group_product.op;
  const suspect needed[] = {embedding, gathering, grouped ? group_quantiser : quantiser,
                            grouped ? group_product : product};
  const bool quantises = grouped || op == quantiser.op || op == product.op;
  for (const suspect& n : std::span(needed).first(quantises ? 4 : 2))
    if (device.level(n.op, n.format) == BITNET_LEVEL_NONE)
      out += (out.empty() ? "" : ", ") + kernel_name(n.op, n.format);
  return out;
}

std::vector<suspect> suspects_of(opened_device& device, const op_case& c, uint32_t flags) {
  if (std::vector<suspect> out = wrong_scaffold(device, c, flags); !out.empty()) return out;
  if (has_op(c, product.op) || has_op(c, group_product.op))
    if (std::vector<suspect> out = quantiser_or_product(device, c, flags); !out.empty()) return out;
  return {{c.op, c.format}};
}

void fail_test_of(const suspect& s, const std::string& text) {
  std::string name = kernel_name(s.op, s.format);
  std::ranges::replace(name, '.', '_');
  channel::breach("ops", name.c_str(), text.c_str());
}

void lay_blame(opened_device& device, const op_case& c, uint32_t flags, const comparison& found) {
  if (found.wrong.empty()) return;
  const std::string text = c.why + ": " + found.wrong + "; " + std::to_string(found.n_wrong) +
                           " of " + std::to_string(found.n) + " are wrong";
  // A call that failed is this op's.
  const std::vector<suspect> suspects =
      found.n == 0 ? std::vector<suspect>{{c.op, c.format}} : suspects_of(device, c, flags);
  const std::string names = names_of(suspects, " or ");
  const std::string which =
      suspects.size() == 1 ? "" : "; it is " + names + ", which look the same from outside";
  bool own = false;
  for (const suspect& s : suspects) {
    if (s == suspect{c.op, c.format})
      own = true;
    else
      fail_test_of(s, text + which);
  }
  if (own)
    ADD_FAILURE() << text << which;
  else
    GTEST_SKIP() << "not judged: " << names << " is wrong, through which its results are seen";
}

std::optional<wrong_op> first_wrong_op(opened_device& device, const model& m,
                                       const std::vector<int32_t>& tokens, double allowed) {
  wrong_op out;
  for (std::size_t i = 0; i < m.ops.size(); ++i) {
    const bitnet_op& op = m.ops[i];
    const uint32_t y = op.outputs[0];
    if (op.op >= BITNET_OP_FIRST_COMPOSITE) continue;
    out.since.push_back({op.op, op.weights[0] == BITNET_NONE
                                    ? uint32_t{BITNET_FORMAT_NONE}
                                    : m.tensors[op.weights[0]].desc.format});
    if (y == BITNET_NONE || m.values[y].dtype != BITNET_DTYPE_F32) continue;
    model part = m;
    part.ops.resize(i + 1);
    std::erase_if(part.ops, [](const bitnet_op& o) { return o.op >= BITNET_OP_FIRST_COMPOSITE; });
    if (m.values[y].dims[0] == BITNET_DIM_OUTPUTS)
      part.logits = y;
    else
      output_rows(part, y);
    runner_options o;
    o.opened = device.device;
    std::vector<token_in> in;
    for (const int32_t t : tokens) in.push_back({t, 0});
    if (nmse(runner(device.table(), part, o).run(in), evaluate(part, tokens)) <= allowed) {
      out.since.clear();
      continue;
    }
    out.text = "the first wrong result is that of op " + std::to_string(i) + ", computed by " +
               names_of(out.since, ", ");
    out.since = wrong_by_themselves(device, out.since);
    if (!out.since.empty()) out.text += "; wrong by itself is " + names_of(out.since, ", ");
    return out;
  }
  return std::nullopt;
}

}  // namespace bitnet::conformance
