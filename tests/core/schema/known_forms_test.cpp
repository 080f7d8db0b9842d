// Forms that were compiled lately are found again, and no more are kept than the bound says.

#include "schema/known_forms.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace bitnet::schema {
namespace {

std::string word(std::size_t i) {
  return fmt::format("root ::= \"word {}\"", i);
}

TEST(known_forms, compiles_a_text_once) {
  known_forms forms;
  const auto first = forms.find(language::gbnf, word(0));
  const auto again = forms.find(language::gbnf, word(0));
  ASSERT_TRUE(first && again);
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(forms.n_compiled(), 1U);
}

TEST(known_forms, distinguishes_schemas_from_grammars) {
  known_forms forms;
  ASSERT_TRUE(forms.find(language::json_schema, "true"));
  EXPECT_FALSE(forms.find(language::gbnf, "true"));
  EXPECT_EQ(forms.n_compiled(), 1U);
}

TEST(known_forms, keeps_those_that_were_asked_for_last) {
  known_forms forms;
  for (std::size_t i = 0; i < known_forms::most; ++i)
    ASSERT_TRUE(forms.find(language::gbnf, word(i)));
  ASSERT_TRUE(forms.find(language::gbnf, word(0)));                  // is the last one now
  ASSERT_TRUE(forms.find(language::gbnf, word(known_forms::most)));  // word(1) goes
  EXPECT_EQ(forms.n_compiled(), known_forms::most + 1);
  ASSERT_TRUE(forms.find(language::gbnf, word(0)));
  EXPECT_EQ(forms.n_compiled(), known_forms::most + 1);
  ASSERT_TRUE(forms.find(language::gbnf, word(1)));
  EXPECT_EQ(forms.n_compiled(), known_forms::most + 2);
}

TEST(known_forms, keeps_nothing_of_a_rejected_text) {
  known_forms forms;
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(forms.find(language::json_schema, R"({"not": {}})"));
  EXPECT_EQ(forms.n_compiled(), 0U);
}

TEST(known_forms, serves_threads_at_once) {
  known_forms forms;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < 200; ++i) EXPECT_TRUE(forms.find(language::gbnf, word(i % 12)));
    });
  for (std::thread& one : threads) one.join();
}

}  // namespace
}  // namespace bitnet::schema
