// Receipts as a program asks for them: of an answer, of a failure, and judged.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "../scratch_folder.hpp"
#include "bitnet/bitnet.h"
#include "demo_session.hpp"

namespace {

using bitnet::test::blank_error;
using bitnet::test::demo_session;
using nlohmann::json;

constexpr const char* private_pem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";

template <class Call>
std::string text_of(const Call& call) {
  bitnet_error e = blank_error();
  uint64_t needed = 0;
  EXPECT_EQ(call(nullptr, uint64_t{0}, &needed, &e), BITNET_OK) << e.message;
  std::string out(needed, '\0');
  EXPECT_EQ(call(out.data(), uint64_t{out.size()}, &needed, &e), BITNET_OK) << e.message;
  return out;
}

bitnet_receipt_options unsigned_statement() {
  bitnet_receipt_options out;
  bitnet_receipt_defaults(&out, sizeof out);
  out.key_file = "";
  out.statement_only = 1;
  return out;
}

class receipts : public testing::Test {
 protected:
  void SetUp() override {
    const bitnet_status s = demo_.open();
    if (s == BITNET_NOT_FOUND || s == BITNET_UNAVAILABLE) GTEST_SKIP() << demo_.error.message;
    ASSERT_EQ(s, BITNET_OK) << demo_.error.message;
  }
  json predicate(const bitnet_receipt_options& o) {
    const std::string text = text_of([&](char* out, uint64_t n, uint64_t* needed, bitnet_error* e) {
      return bitnet_session_receipt(demo_.session, &o, out, n, needed, e);
    });
    return json::parse(text)["predicate"];
  }
  bitnet_status rejection(const bitnet_receipt_options& o) {
    demo_.error = blank_error();
    uint64_t needed = 0;
    return bitnet_session_receipt(demo_.session, &o, nullptr, 0, &needed, &demo_.error);
  }
  demo_session demo_;
};

TEST_F(receipts, are_of_the_last_answer) {
  EXPECT_EQ(rejection(unsigned_statement()), BITNET_INVALID_ARGUMENT) << "nothing was generated";
  ASSERT_EQ(demo_.generate(4), BITNET_OK) << demo_.error.message;
  const json first = predicate(unsigned_statement());
  EXPECT_EQ(first["status"], "ok");
  EXPECT_EQ(first["compute_path"], "real");
  EXPECT_EQ(first["prompt"]["tokens"], 3);
  EXPECT_EQ(first["tokens_generated"], 4);
  EXPECT_FALSE(first["prompt"].contains("ids"));
  bitnet_receipt_options o = unsigned_statement();
  o.with_tokens = 1;
  std::vector<bitnet_token> generated;
  ASSERT_EQ(demo_.generate(2, 3, nullptr, nullptr, &generated), BITNET_OK);
  const json second = predicate(o);
  EXPECT_EQ(second["prompt"]["tokens"], 3 + 4 + 3) << "all that stood before the answer";
  EXPECT_EQ(second["output"]["ids"], generated);
  EXPECT_NE(first["salt"], second["salt"]);
  EXPECT_GT(second["coverage"]["ops_total"], first["coverage"]["ops_total"]);
}

TEST_F(receipts, of_a_call_that_failed_say_so) {
  ASSERT_NE(demo_.generate(1, bitnet_session_capacity(demo_.session) + 1), BITNET_OK);
  const json failed = predicate(unsigned_statement());
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_EQ(failed["failure"]["status"], BITNET_CONTEXT_FULL);
}

TEST_F(receipts, take_members_of_the_program_and_none_of_the_library) {
  ASSERT_EQ(demo_.generate(1), BITNET_OK);
  bitnet_receipt_options o = unsigned_statement();
  const auto with = [&](const char* text) {
    o.facts = {text, std::char_traits<char>::length(text)};
    return rejection(o);
  };
  EXPECT_EQ(with(R"({"compute_path": "real"})"), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(with(R"([1])"), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(with(R"({"gates": 1})"), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(with(R"({"gates": [{"name": "min-tps", "limit": 1, "measured": 2, "passed": true}]})"),
            BITNET_OK);
  EXPECT_EQ(with(R"({"program": {"anything": [1]}})"), BITNET_OK);
}

TEST_F(receipts, that_are_signed_are_judged) {
  ASSERT_EQ(demo_.generate(2), BITNET_OK);
  const bitnet::test::scratch_folder scratch;
  const std::string key = scratch.write("key.pem", private_pem).string();
  std::filesystem::permissions(
      key, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  bitnet_receipt_options o;
  bitnet_receipt_defaults(&o, sizeof o);
  o.key_file = key.c_str();
  const std::string receipt =
      text_of([&](char* out, uint64_t n, uint64_t* needed, bitnet_error* e) {
        return bitnet_session_receipt(demo_.session, &o, out, n, needed, e);
      });
  bitnet_receipt_check check;
  bitnet_receipt_check_defaults(&check, sizeof check);
  check.key_file = key.c_str();
  const auto judged = [&](const std::string& text) {
    return json::parse(text_of([&](char* out, uint64_t n, uint64_t* needed, bitnet_error* e) {
      return bitnet_receipt_verify({text.data(), text.size()}, &check, out, n, needed, e);
    }));
  };
  const json good = judged(receipt);
  EXPECT_TRUE(good["valid"]) << good;
  EXPECT_EQ(good["signed_by"], key);
  EXPECT_EQ(good["statement"]["predicate"]["status"], "ok");
  uint64_t needed = 0;
  bitnet_error e = blank_error();
  EXPECT_EQ(bitnet_receipt_verify({"{}", 2}, &check, nullptr, 0, &needed, &e), BITNET_BAD_DATA);
  check.require_fused = 101;
  EXPECT_EQ(
      bitnet_receipt_verify({receipt.data(), receipt.size()}, &check, nullptr, 0, &needed, &e),
      BITNET_INVALID_ARGUMENT);
}

TEST_F(receipts, of_a_run_without_a_session_name_the_failure) {
  const bitnet_receipt_options o = unsigned_statement();
  const json failed =
      json::parse(text_of([&](char* out, uint64_t n, uint64_t* needed, bitnet_error* e) {
        return bitnet_runtime_receipt(demo_.runtime, BITNET_NOT_FOUND, "no model", &o, out, n,
                                      needed, e);
      }))["predicate"];
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_EQ(failed["compute_path"], "none");
  EXPECT_EQ(failed["failure"]["message"], "no model");
  EXPECT_FALSE(failed.contains("model"));
}

TEST(receipt_calls, null_arguments_are_an_error_not_a_crash) {
  bitnet_error e = blank_error();
  EXPECT_EQ(bitnet_session_receipt(nullptr, nullptr, nullptr, 0, nullptr, &e),
            BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_runtime_receipt(nullptr, BITNET_INTERNAL, "x", nullptr, nullptr, 0, nullptr, &e),
            BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_receipt_verify({nullptr, 4}, nullptr, nullptr, 0, nullptr, &e),
            BITNET_INVALID_ARGUMENT);
}

}  // namespace
