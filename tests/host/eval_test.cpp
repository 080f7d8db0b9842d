// What `bitnet eval` counts, against numbers that were worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "eval/choices.hpp"
#include "eval/divergence.hpp"
#include "eval/likelihood.hpp"

namespace bitnet::host::eval {
namespace {

// Logits whose probabilities are these, moved by a constant that does not matter.
std::vector<float> row_of(std::initializer_list<double> probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p) + 3));
  return out;
}

TEST(eval, log_softmax_gives_log_probabilities) {
  const auto logits = row_of({0.5, 0.25, 0.25});
  const log_softmax row(logits);
  EXPECT_NEAR(row[0], std::log(0.5), 1e-7);
  EXPECT_NEAR(row[2], std::log(0.25), 1e-7);
  EXPECT_EQ(row.best(), 0U);
}

TEST(eval, log_softmax_bears_large_logits) {
  const std::vector<float> logits{3000, 3000, -3000};
  const log_softmax row(logits);
  EXPECT_NEAR(row[0], -std::numbers::ln2, 1e-12);
  EXPECT_NEAR(row[2], -6000 - std::numbers::ln2, 1e-9);
  EXPECT_EQ(row.best(), 0U) << "the first of equal ones";
}

TEST(eval, perplexity_and_its_error_equal_their_formulas) {
  token_tally tally;
  for (const double nll : {1.0, 2.0, 3.0, 6.0}) tally.add(nll, 1);
  // Mean 3, sum of squares 4 + 1 + 0 + 9 = 14, error sqrt(14 / 3 / 4).
  const double error = std::sqrt(14.0 / 12);
  EXPECT_DOUBLE_EQ(tally.nll().value, 3);
  EXPECT_NEAR(tally.nll().error, error, 1e-15);
  EXPECT_NEAR(tally.perplexity().value, std::exp(3), 1e-12);
  EXPECT_NEAR(tally.perplexity().error, std::exp(3) * error, 1e-12);
}

TEST(eval, bits_per_byte_are_a_ratio_of_sums) {
  token_tally tally;
  tally.add(2, 1);
  tally.add(4, 3);
  tally.add(3, 5);
  // 9 nats in 9 bytes: what is beyond 1 nat per byte is 1, 1, -2; sqrt(6 * 3 / 2) / 9 = 1/3.
  EXPECT_EQ(tally.bytes(), 9U);
  EXPECT_NEAR(tally.bits_per_byte().value, 1 / std::numbers::ln2, 1e-15);
  EXPECT_NEAR(tally.bits_per_byte().error, 1.0 / 3 / std::numbers::ln2, 1e-12);
}

TEST(eval, one_value_has_no_error) {
  token_tally tally;
  tally.add(2, 4);
  EXPECT_EQ(tally.nll().error, 0);
  EXPECT_EQ(tally.bits_per_byte().error, 0);
}

TEST(eval, chunks_are_those_of_llama_perplexity) {
  const chunk_rule even{512};  // logits 256 to 510 score tokens 257 to 511
  EXPECT_EQ(even.first_scored(), 257U);
  EXPECT_EQ(even.n_scored(), 255U);
  const chunk_rule odd{5};  // logits 2 and 3
  EXPECT_EQ(odd.first_scored(), 3U);
  EXPECT_EQ(odd.n_scored(), 2U);
  EXPECT_EQ(even.n_chunks(1535, -1), 2U) << "what is left is not read";
  EXPECT_EQ(even.n_chunks(1536, -1), 3U);
  EXPECT_EQ(even.n_chunks(1536, 2), 2U);
  EXPECT_EQ(even.n_chunks(1536, 9), 3U);
}

TEST(eval, divergence_of_known_probabilities_equals_its_formula) {
  divergence both;
  both.add(row_of({0.5, 0.5}), row_of({0.25, 0.75}), 0);
  both.add(row_of({0.8, 0.2}), row_of({0.8, 0.2}), 1);
  const divergence_summary s = both.summary();
  const double kld = 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75);
  EXPECT_EQ(s.n, 2U);
  EXPECT_NEAR(s.kld.value, kld / 2, 1e-7);
  EXPECT_NEAR(s.kld.error, kld / 2, 1e-7) << "of two values: half of their difference";
  EXPECT_NEAR(s.kld_max, kld, 1e-7);
  EXPECT_NEAR(s.kld_min, 0, 1e-15);
  EXPECT_NEAR(s.delta_p.value, -0.125, 1e-7);
  EXPECT_NEAR(s.rms_delta_p.value, 0.25 / std::numbers::sqrt2, 1e-7);
  EXPECT_NEAR(s.rms_delta_p.error, 0.03125 / (2 * 0.25 / std::numbers::sqrt2), 1e-7);
  EXPECT_NEAR(s.base_ppl.value, std::sqrt(1 / (0.5 * 0.2)), 1e-6);
  EXPECT_NEAR(s.ppl.value, std::sqrt(1 / (0.25 * 0.2)), 1e-6);
  EXPECT_NEAR(s.log_ratio.value, std::log(2) / 2, 1e-7);
  EXPECT_EQ(s.same_top.n, 1U) << "the first of equal ones is 0, then it is 1";
}

TEST(eval, quantiles_lie_between_order_statistics) {
  std::vector<double> values(100);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  const quantile middle = quantile_of(values, 50);  // rank 50, give or take 1.96 * 5 = 9.8
  EXPECT_EQ(middle.value, 50);
  EXPECT_EQ(middle.low, 40);
  EXPECT_EQ(middle.high, 61);
  const quantile last = quantile_of(values, 99.9);
  EXPECT_EQ(last.value, 100);
  EXPECT_EQ(last.high, 100) << "no rank above the last";
  EXPECT_EQ(quantile_of(std::span(values).first(20), 95).value, 19) << "no rounding error";
}

TEST(eval, intervals_equal_wilsons_formula) {
  // (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), z² = 3.841459.
  const auto [low, high] = share{8, 10}.wilson();
  EXPECT_NEAR(low, 0.490162, 1e-6);
  EXPECT_NEAR(high, 0.943318, 1e-6);
  const auto none = share{0, 10}.wilson();
  EXPECT_NEAR(none.low, 0, 1e-12);
  EXPECT_NEAR(none.high, 3.841459 / 13.841459, 1e-6);
  const auto all = share{10, 10}.wilson();
  EXPECT_NEAR(all.low, 10 / 13.841459, 1e-6);
  EXPECT_LE(all.high, 1);
}

TEST(eval, lines_of_both_forms_are_read) {
  const auto swag = read_choice_item(R"({"ctx": "A", "endings": ["x", "y"], "label": "1"})");
  ASSERT_TRUE(swag);
  EXPECT_EQ(swag->context, "A");
  EXPECT_EQ(swag->label, 1U);
  const auto arc = read_choice_item(
      R"({"question": "Q?", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"})");
  ASSERT_TRUE(arc);
  EXPECT_EQ(arc->context, "Question: Q?\nAnswer:");
  EXPECT_EQ(arc->label, 1U);
}

TEST(eval, wrong_lines_say_what_is_wrong) {
  struct row {
    const char *line, *why;
  };
  for (
      const auto& [line, why] : std::initializer_list<row>{
          {"[1]", "line"},
          {"{", "line"},
          {"{}", "neither 'ctx'"},
          {R"({"ctx": 1, "endings": ["x", "y"], "label": 0})", "'ctx'"},
          {R"({"ctx": "a", "endings": ["x"], "label": 0})", "'endings'"},
          {R"({"ctx": "a", "endings": "xy", "label": 0})", "'endings'"},
          {R"({"ctx": "a", "endings": ["x", ""], "label": 0})", "an empty one"},
          {R"({"ctx": "a", "endings": ["x", "y"], "label": 2})", "0 to 1"},
          {R"({"ctx": "a", "endings": ["x", "y"], "label": -1})", "0 to 1"},
          {R"({"ctx": "a", "endings": ["x", "y"], "label": "1x"})", "0 to 1"},
          {R"({"ctx": "a", "endings": ["x", "y"]})", "'label'"},
          {R"({"question": "q", "choices": {"text": ["x", "y"], "label": ["A"]}, "answerKey": "A"})",
           "'choices.label'"},
          {R"({"question": "q", "choices": {"text": ["x", "y"], "label": ["A", "B", "C"]},
                "answerKey": "A"})",
           "2 texts and 3 labels"},
          {R"({"question": "q", "choices": {"text": ["x", "y"], "label": ["A", "B"]},
                "answerKey": "C"})",
           "'answerKey'"},
          {R"({"question": "q", "choices": {"text": ["x", "y"], "label": ["A", "A"]},
                "answerKey": "A"})",
           "twice"},
          {R"({"question": {"stem": "q"}, "choices": []})", "'question'"}}) {
    const auto item = read_choice_item(line);
    ASSERT_FALSE(item) << line;
    EXPECT_NE(item.error().find(why), std::string::npos) << line << ": " << item.error();
  }
}

TEST(eval, an_ending_is_apart_from_its_context) {
  const choice_item item{.line = 1, .context = "A", .endings = {"b", " b", "\nb"}, .label = 0};
  EXPECT_EQ(joined(item, 0), "A b");
  EXPECT_EQ(joined(item, 1), "A b");
  EXPECT_EQ(joined(item, 2), "A\nb");
  EXPECT_EQ(joined({.line = 1, .context = "A ", .endings = {"b"}, .label = 0}, 0), "A b");
}

TEST(eval, the_chosen_ending_depends_on_lengths) {
  const choice_score score{.logprobs = {-4, -3, -3}, .lengths = {8, 2, 3}};
  EXPECT_EQ(chosen(score, false), 1U) << "the first of equal ones";
  EXPECT_EQ(chosen(score, true), 0U) << "-0.5, -1.5, -1";
  EXPECT_EQ(characters_of("aé→😀"), 4U);
}

TEST(eval, a_summary_counts_and_guesses) {
  const std::vector<choice_item> items{
      {.line = 1, .context = "a", .endings = {"x", "y"}, .label = 0},
      {.line = 2, .context = "a", .endings = {"x", "y", "z", "w"}, .label = 3}};
  const std::vector<choice_score> scores{{.logprobs = {-1, -2}, .lengths = {1, 4}},
                                         {.logprobs = {-9, -8, -7, -6}, .lengths = {1, 1, 1, 1}}};
  const choice_summary s = summary_of(items, scores);
  EXPECT_EQ(s.right.n, 2U);
  EXPECT_EQ(s.right_normalised.n, 1U);
  EXPECT_DOUBLE_EQ(s.random, (0.5 + 0.25) / 2);
}

}  // namespace
}  // namespace bitnet::host::eval
