// Receipts of requests that ran among others: they are judged as those of sessions are.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "many_requests.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the requests
using nlohmann::json;

class request_receipts : public scheduler {
 protected:
  static wish noted(uint32_t kind, int32_t max_tokens, uint32_t n_choices = 1) {
    wish w;
    w.prompt = prompt_of(9 + kind, kind);
    w.max_tokens = max_tokens;
    w.n_choices = n_choices;
    w.temperature = 0.9F;
    w.receipt = 1;
    return w;
  }

  bitnet_status ask(bitnet_request* r, uint32_t choice, std::string& text, bool statement = true,
                    const char* facts = "") {
    bitnet_receipt_options o;
    bitnet_receipt_defaults(&o, sizeof o);
    o.key_file = "";
    o.with_tokens = 1;
    o.statement_only = statement ? 1 : 0;
    o.facts = {facts, std::char_traits<char>::length(facts)};
    error_ = blank_error();
    uint64_t n = 0;
    bitnet_status s = bitnet_request_receipt(r, choice, &o, nullptr, 0, &n, &error_);
    if (s != BITNET_OK) return s;
    text.resize(n);
    return bitnet_request_receipt(r, choice, &o, text.data(), n, &n, &error_);
  }
  json predicate(bitnet_request* r, uint32_t choice = 0) {
    std::string text;
    EXPECT_EQ(ask(r, choice, text), BITNET_OK) << error_.message;
    return text.empty() ? json() : json::parse(text)["predicate"];
  }
  // What the rules find in the receipt, in one line each.
  std::string findings(bitnet_request* r, uint32_t choice = 0) {
    std::string receipt;
    EXPECT_EQ(ask(r, choice, receipt, false), BITNET_OK) << error_.message;
    bitnet_receipt_check check;
    bitnet_receipt_check_defaults(&check, sizeof check);
    check.allow_unsigned = 1;
    check.trusted_keys = nullptr;
    uint64_t n = 0;
    const bitnet_str of{receipt.data(), receipt.size()};
    EXPECT_EQ(bitnet_receipt_verify(of, &check, nullptr, 0, &n, &error_), BITNET_OK)
        << error_.message;
    std::string text(n, ' ');
    EXPECT_EQ(bitnet_receipt_verify(of, &check, text.data(), n, &n, &error_), BITNET_OK);
    std::string out;
    for (const json& f : json::parse(text)["findings"])
      if (f["level"] != "note")
        out += f["field"].get<std::string>() + ": " + f["text"].get<std::string>() + "\n";
    return out;
  }
};

TEST_F(request_receipts, of_each_among_others_have_its_tokens_and_are_valid) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  std::vector<bitnet_request*> all;
  std::vector<wish> wishes;
  for (uint32_t kind = 0; kind < 6; ++kind)
    wishes.push_back(noted(kind, 6 + 3 * static_cast<int32_t>(kind)));
  for (const wish& w : wishes) all.push_back(submit(w));
  uint64_t most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto got = read(all[i]);
    EXPECT_EQ(findings(all[i]), "");
    const json p = predicate(all[i]);
    EXPECT_EQ(p["status"], "ok");
    EXPECT_EQ(p["compute_path"], "real");
    EXPECT_EQ(p["prompt"]["ids"], wishes[i].prompt);
    EXPECT_EQ(p["output"]["ids"], got.at(0).tokens);
    EXPECT_EQ(p["output"]["ids"], alone(wishes[i]));
    EXPECT_EQ(p["seed"], wishes[i].seed);
    EXPECT_EQ(p["tokens_requested"], wishes[i].max_tokens);
    const json& batch = p["batch"];
    EXPECT_EQ(batch["tokens"], wishes[i].prompt.size() + got.at(0).tokens.size() - 1);
    EXPECT_GE(batch["step_tokens"], batch["tokens"]);
    EXPECT_GE(batch["mean_sequences"], 1);
    most = std::max(most, batch["sequences"].get<uint64_t>());
  }
  EXPECT_GT(most, 1U) << "they shared steps";
}

TEST_F(request_receipts, do_not_count_what_ran_before) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  bitnet_request* const first = submit(noted(1, 5));
  read(first);
  bitnet_request* const second = submit(noted(2, 5));
  read(second);
  const json one = predicate(first), two = predicate(second);
  EXPECT_EQ(one["batch"]["sequences"], 1);
  EXPECT_EQ(one["batch"]["step_tokens"], one["batch"]["tokens"]);
  // The counters of the second do not have those of the first.
  EXPECT_EQ(one["batch"]["steps"], two["batch"]["steps"]);
  EXPECT_EQ(one["coverage"]["ops_total"], two["coverage"]["ops_total"]);
}

TEST_F(request_receipts, of_choices_have_the_seed_of_each) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  const wish w = noted(3, 8, 3);
  bitnet_request* const r = submit(w);
  const auto got = read(r);
  for (uint32_t choice = 0; choice < 3; ++choice) {
    EXPECT_EQ(findings(r, choice), "");
    const json p = predicate(r, choice);
    EXPECT_EQ(p["seed"], w.seed + choice);
    EXPECT_EQ(p["output"]["ids"], got.at(choice).tokens);
    EXPECT_EQ(p["output"]["ids"], alone(w, choice));
  }
  wish best = noted(4, 8, 1);
  best.best_of = 3;
  bitnet_request* const one = submit(best);
  const auto chosen = read(one);
  const json p = predicate(one);
  EXPECT_EQ(findings(one), "");
  EXPECT_EQ(p["seed"], best.seed + chosen.at(0).end.candidate);
  EXPECT_EQ(p["output"]["ids"], chosen.at(0).tokens);
}

TEST_F(request_receipts, of_a_prompt_that_is_known_say_what_was_computed) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  wish w = noted(1, 4);
  w.prompt = prompt_of(200, 1);
  read(submit(w));
  bitnet_request* const again = submit(w);
  const auto got = read(again);
  EXPECT_GT(got.at(0).end.n_cached, 0U);
  EXPECT_EQ(findings(again), "");
  const json p = predicate(again);
  EXPECT_EQ(p["prompt"]["tokens"], 200);
  EXPECT_EQ(p["timings"]["prompt_tokens"], 200 - got.at(0).end.n_cached);
}

TEST_F(request_receipts, of_a_cancelled_or_late_request_report_its_end) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  std::map<uint32_t, answer> all;
  bitnet_request* const r = submit(noted(1, -1));
  ASSERT_TRUE(take(r, all));
  bitnet_request_cancel(r);
  while (take(r, all)) {
  }
  const json p = predicate(r);
  EXPECT_EQ(p["status"], "cancelled");
  EXPECT_EQ(p["stop"], "cancelled");
  EXPECT_EQ(findings(r), "");
  wish late = noted(2, -1);
  late.deadline_ms = 1;
  bitnet_request* const failed = submit(late);
  read(failed);
  const json of_late = predicate(failed);
  EXPECT_EQ(of_late["status"], "failed");
  EXPECT_EQ(of_late["failure"]["status"], BITNET_TIMEOUT);
}

TEST_F(request_receipts, are_rejected_for_requests_that_recorded_nothing) {
  ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
  std::string text;
  wish w = noted(1, 3);
  bitnet_request* const r = submit(w);
  EXPECT_EQ(ask(r, 0, text), BITNET_INVALID_ARGUMENT) << "it has not ended";
  read(r);
  EXPECT_EQ(ask(r, 1, text), BITNET_INVALID_ARGUMENT) << "it has one choice";
  EXPECT_EQ(ask(r, 0, text, true, R"({"batch": {}})"), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(ask(r, 0, text, true, R"({"program": {"command": "mine"}})"), BITNET_OK);
  w.receipt = 0;
  bitnet_request* const without = submit(w);
  read(without);
  EXPECT_EQ(ask(without, 0, text), BITNET_INVALID_ARGUMENT);
  bitnet_scheduler_close(scheduler_);
  scheduler_ = nullptr;
  EXPECT_EQ(ask(r, 0, text), BITNET_INVALID_ARGUMENT) << "its scheduler is closed";
  EXPECT_EQ(bitnet_request_receipt(nullptr, 0, nullptr, nullptr, 0, nullptr, &error_),
            BITNET_INVALID_ARGUMENT);
}

}  // namespace
