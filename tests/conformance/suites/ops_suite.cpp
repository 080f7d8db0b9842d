// Each op against its definition, each composite against its body. One test per op and format, made
// from the list of cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "harness/channel.hpp"
#include "harness/child.hpp"
#include "model/formats.hpp"
#include "model/tiny_model.hpp"
#include "reference/evaluate.hpp"
#include "reference/names.hpp"
#include "suites/blame.hpp"
#include "suites/trial.hpp"

namespace bitnet::conformance {
namespace {

struct subject {
  uint32_t op, format;
};

// Every primitive with every weight format that it has.
std::vector<subject> all_subjects() {
  std::vector<subject> out;
  for (const op_row& row : all_ops()) {
    if (row.id >= BITNET_OP_FIRST_COMPOSITE) continue;
    if (row.id == BITNET_OP_EMBED_GATHER || row.id == BITNET_OP_LINEAR_DENSE) {
      for (const format& f : all_formats())
        if (row.id == BITNET_OP_EMBED_GATHER || f.id != BITNET_FORMAT_TERNARY2)
          out.push_back({row.id, f.id});
    } else {
      const bool ternary =
          row.id == BITNET_OP_LINEAR_TERNARY || row.id == BITNET_OP_LINEAR_TERNARY_GROUPED;
      const bool f32 = row.id == BITNET_OP_RMS_NORM || row.id == BITNET_OP_RMS_NORM_HEADS ||
                       row.id == BITNET_OP_SHORT_CONV || row.id == BITNET_OP_DELTA_GATES;
      out.push_back({row.id, ternary ? BITNET_FORMAT_TERNARY2
                             : f32   ? BITNET_FORMAT_F32
                                     : BITNET_FORMAT_NONE});
    }
  }
  return out;
}

op_cases cases_of(const subject& s, const bitnet_device_info& d) {
  return conformance::cases_of(s.op, s.format, d.kv_dtypes, d.attention_flags);
}

class primitive_test : public testing::Test {
 public:
  explicit primitive_test(const subject& s) : subject_(s) {}
  void TestBody() override {
    opened_device device;
    const uint32_t level = device.level(subject_.op, subject_.format);
    if (level == BITNET_LEVEL_NONE) GTEST_SKIP() << "graph_query answers none";
    if (const std::string missing = scaffold_missing(device, subject_.op); !missing.empty())
      FAIL() << "to test it the kit needs " << missing << ", which graph_query answers with none";
    uint64_t ran = 0;
    std::string rejected;
    const std::vector<bitnet_kernel_info> listed = device.kernels();
    for (const op_case& c : cases_of(subject_, device.info())) {
      for (const uint32_t flags : {BITNET_PROGRAM_DETERMINISTIC, 0u}) {
        const comparison found = run_case(device, c, flags);
        if (!found.rejected.empty()) {
          rejected = c.why + ": " + found.rejected;
          continue;
        }
        ++ran;
        lay_blame(device, c, flags, found);
        const std::string claim = broken_claim(listed, found.stats, subject_.op, level);
        if (!claim.empty()) ADD_FAILURE() << c.why << ": " << claim;
        if (HasFailure() || IsSkipped()) return;
      }
    }
    EXPECT_NE(ran, 0u) << "claimed, and every shape is rejected: " << rejected;
  }

 private:
  subject subject_;
};

std::string test_name(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

const bool ops_are_registered = [] {
  for (const subject& s : all_subjects())
    testing::RegisterTest("ops", test_name(kernel_name(s.op, s.format)).c_str(), nullptr, nullptr,
                          __FILE__, __LINE__,
                          [s]() -> testing::Test* { return new primitive_test(s); });
  return true;
}();

TEST(ops, lists_and_answers_agree) {
  ASSERT_TRUE(ops_are_registered);
  const opened_device device;
  for (const bitnet_kernel_info& k : device.kernels()) {
    const auto expect_answered = [&](uint32_t op, uint32_t format) {
      EXPECT_NE(device.level(op, format), BITNET_LEVEL_NONE)
          << std::string(k.id, strnlen(k.id, sizeof k.id)) << " is listed for "
          << kernel_name(k.op, k.format) << ", and graph_query answers " << kernel_name(op, format)
          << " with none";
    };
    // A composite's kernel may be for its body alone, wherever the plugin finds that.
    const std::vector<uint32_t> body = body_of(k.op);
    if (body.empty() || device.level(k.op, k.format) != BITNET_LEVEL_NONE)
      expect_answered(k.op, k.format);
    else
      for (const uint32_t op : body) {
        const bool product = op == BITNET_OP_LINEAR_TERNARY || op == BITNET_OP_LINEAR_DENSE;
        expect_answered(op, product ? k.format : BITNET_FORMAT_NONE);
      }
  }
  for (const subject& s : all_subjects()) {
    const uint32_t level = device.level(s.op, s.format);
    if (level == BITNET_LEVEL_NONE) continue;
    EXPECT_LE(level, BITNET_LEVEL_FUSED);
    const auto fits = [&](const bitnet_kernel_info& k) {
      return k.op == s.op && (k.format == BITNET_FORMAT_NONE || k.format == s.format) &&
             k.level >= level;
    };
    const std::vector<bitnet_kernel_info> all = device.kernels();
    EXPECT_TRUE(std::ranges::any_of(all, fits))
        << kernel_name(s.op, s.format) << " is answered with " << level_name(level)
        << ", and no such kernel is listed";
  }
}

// Of a kernel that rounds; none for ops that the kit does not test with rounding.
op_cases rounded_cases_of(const bitnet_kernel_info& k, const bitnet_device_info& d) {
  if (k.precision == BITNET_PRECISION_F32) return {};
  if (k.op == BITNET_OP_LINEAR_DENSE) return rounded_dense_cases(k.format, k.precision);
  if (k.op == BITNET_OP_ATTN_PAGED)
    return rounded_attn_paged_cases(d.kv_dtypes, d.attention_flags, k.precision);
  return {};
}

// Kernels that round run in programs that permit it only, and then stay within the bound of ops.h.
TEST(ops, rounding_is_asked_for) {
  opened_device device;
  uint64_t rounding = 0;
  const auto id_of = [](const auto& named) {
    return std::string(named.id, strnlen(named.id, sizeof named.id));
  };
  const std::vector<bitnet_kernel_info> listed = device.kernels();
  for (const bitnet_kernel_info& k : listed) {
    op_cases cases = rounded_cases_of(k, device.info());
    if (cases.empty()) continue;
    ++rounding;
    SCOPED_TRACE(id_of(k));
    // Of forms for the same work any one may be counted.
    const auto is_form = [&](const bitnet_kernel_stat& s) {
      return std::ranges::any_of(listed, [&](const bitnet_kernel_info& other) {
        return other.op == k.op && other.format == k.format && other.precision == k.precision &&
               id_of(other) == id_of(s);
      });
    };
    bool ran = false;
    for (op_case& c : cases) {
      const auto runs_it = [&](const comparison& found) {
        return std::ranges::any_of(
            found.stats, [&](const bitnet_kernel_stat& s) { return s.calls != 0 && is_form(s); });
      };
      const comparison permitted = run_case(device, c, 0);
      EXPECT_EQ(permitted.n_wrong, 0u) << c.why << ": " << permitted.wrong;
      ran |= runs_it(permitted);
      c.precisions = 0;
      EXPECT_FALSE(runs_it(run_case(device, c, 0))) << c.why << ": it was not permitted";
    }
    EXPECT_TRUE(ran)
        << "it is listed, and no step of up to 70 tokens runs it or another form of it";
  }
  if (rounding == 0) GTEST_SKIP() << "it lists no kernel that rounds";
}

// A model with one kind of composite, and the same as bodies only.
struct pair_of_models {
  model fused, bodies;
};

pair_of_models models_of(uint32_t composite) {
  if (composite == BITNET_OP_BIT_LINEAR) {
    pair_of_models out;
    for (model* m : {&out.fused, &out.bodies}) {
      std::mt19937 random(5);
      std::vector<float> rows(uint64_t{256} * 16);
      for (float& x : rows) x = uniform(random, -2, 2);
      const uint32_t x = input_rows(*m, 256, rows);
      const uint32_t q = m->value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, 256);
      const uint32_t s = m->value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
      const uint32_t y = m->value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 44);
      if (m == &out.fused) m->op(composite, {x}, {y}).body_count = 2;
      m->op(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
      m->op(BITNET_OP_LINEAR_TERNARY, {q, s}, {y}, {m->ternary(256, 44, 0, random)});
      output_rows(*m, y);
    }
    return out;
  }
  tiny_shape shape;
  shape.only_composite = composite;
  shape.relu2 = composite != BITNET_OP_FFN_SILU_GATED;
  tiny_shape plain = shape;
  plain.composites = false;
  const tiny_model fused(shape), bodies(plain);
  const model &a = fused, &b = bodies;  // what they add to a model is how they were made
  return {a, b};
}

void run_composite(uint32_t composite) {
  opened_device device;
  const pair_of_models models = models_of(composite);
  if (const std::string missing = missing_ops(device, models.bodies); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  const uint32_t level = device.level(composite, BITNET_FORMAT_TERNARY2);
  const std::vector<int32_t> prompt = {3, 1, 4, 1, 5, 9, 2, 6};
  std::vector<token_in> tokens;
  for (const int32_t t : prompt) tokens.push_back({t, 0});
  std::vector<float> results[2];
  std::vector<bitnet_kernel_stat> ran;
  for (const model* m : {&models.fused, &models.bodies}) {
    runner_options o;
    o.opened = device.device;
    runner r(device.table(), *m, o);
    std::vector<float>& out = results[m == &models.bodies];
    out = r.run({tokens.begin(), tokens.begin() + 5});
    for (std::size_t t = 5; t < tokens.size(); ++t) {
      const std::vector<float> row = r.run({tokens[t]});
      out.insert(out.end(), row.begin(), row.end());
    }
    if (m == &models.fused) ran = r.stats();
  }
  // A body that is wrong says nothing about the kernel that is compared with it.
  if (!(nmse(results[1], evaluate(models.bodies, prompt)) <= few_codes))
    if (const auto wrong = first_wrong_op(device, models.bodies, prompt, few_codes)) {
      if (wrong->since.empty()) FAIL() << "its body is wrong, one op at a time: " << wrong->text;
      for (const suspect& s : wrong->since) fail_test_of(s, wrong->text);
      GTEST_SKIP() << "not judged: its body is wrong, one op at a time: " << wrong->text;
    }
  EXPECT_LE(nmse(results[0], results[1]), few_codes) << "the fused kernel computes something else";
  if (level == BITNET_LEVEL_FUSED) {
    EXPECT_EQ(broken_claim(device.kernels(), ran, composite, level), "");
  }
}

TEST(ops, bit_linear) {
  run_composite(BITNET_OP_BIT_LINEAR);
}
TEST(ops, qkv_rope_kv) {
  run_composite(BITNET_OP_QKV_ROPE_KV);
}
TEST(ops, attn_out) {
  run_composite(BITNET_OP_ATTN_OUT);
}
TEST(ops, ffn_relu2_gated) {
  run_composite(BITNET_OP_FFN_RELU2_GATED);
}
TEST(ops, ffn_silu_gated) {
  run_composite(BITNET_OP_FFN_SILU_GATED);
}
TEST(ops, lm_head) {
  run_composite(BITNET_OP_LM_HEAD);
}

nlohmann::json parity_row(opened_device& device, const subject& s) {
  const uint32_t level = device.level(s.op, s.format);
  nlohmann::json row = {
      {"op", op_name(s.op)}, {"format", format_name(s.format)}, {"level", level_name(level)}};
  if (level == BITNET_LEVEL_NONE || !scaffold_missing(device, s.op).empty()) return row;
  comparison all;
  uint64_t cases = 0, rejected = 0;
  double worst = 0;  // of the cases, whose numbers differ in size
  std::string kernel;
  for (const op_case& c : cases_of(s, device.info())) {
    const comparison one = run_case(device, c, BITNET_PROGRAM_DETERMINISTIC);
    if (!one.rejected.empty()) {
      ++rejected;
      continue;
    }
    ++cases;
    all.n += one.n;
    all.n_wrong += one.n_wrong;
    all.max_abs = std::max(all.max_abs, one.max_abs);
    all.max_ulp = std::max(all.max_ulp, one.max_ulp);
    worst = std::max(worst, nmse(one.error_squares, one.squares));
    all.exact &= one.exact;
    if (all.wrong.empty() && !one.wrong.empty()) all.wrong = c.why + ": " + one.wrong;
    for (const bitnet_kernel_stat& k : one.stats)
      if (k.op == s.op) kernel.assign(k.id, strnlen(k.id, sizeof k.id));
  }
  row["kernel"] = kernel;
  row["cases"] = cases;
  row["refused"] = rejected;
  row["numbers"] = all.n;
  row["max_abs"] = all.max_abs;
  row["nmse"] = worst;
  row["max_ulp"] = all.max_ulp;
  row["exact"] = all.exact;
  row["ok"] = all.wrong.empty() && cases != 0;
  if (!all.wrong.empty()) row["wrong"] = all.wrong;
  return row;
}

}  // namespace

int compare_ops(const options&) {
  opened_device device;
  for (const subject& s : all_subjects())
    channel::say({{"rows", nlohmann::json::array({parity_row(device, s)})}});
  channel::say({{"done", 0}});
  return 0;
}

}  // namespace bitnet::conformance
