#include "chat/fitting.hpp"

#include <gtest/gtest.h>

#include <string>

#include "small_vocabulary.hpp"

namespace bitnet::chat {
namespace {

// A token for each byte.
tokenizer::tokenizer bytes_of_text(std::string jinja) {
  return tokenizer::tokenizer::make(byte_vocabulary(std::move(jinja))).value();
}

std::string text_of(const tokenizer::tokenizer& tokens, const result<prompt>& made) {
  return made ? tokens.decode(made->ids, true).value() : made.error().message;
}

TEST(chat_fitting, leaves_out_the_oldest_turns) {
  const auto tokens = bytes_of_text("");
  const message talk[] = {{"system", "S"}, {"user", "u1"},      {"assistant", "a1"},
                          {"user", "u2"},  {"assistant", "a2"}, {"user", "u3"}};
  const std::span<const message> whole = talk;
  const message tools[] = {{"user", "u1"}, {"assistant", "c"}, {"assistant", "a1"}, {"user", "u2"}};
  const message answered[] = {{"user", "u1"}, {"assistant", "a1"}};
  const struct {
    const char* why;
    std::span<const message> messages;
    uint64_t context;
    const char* expected;
    std::size_t left_out;
  } rows[] = {
      {"no bound", whole, 0, "Su1a1u2a2u3", 0},
      {"all of it, and an eighth stays free", whole, 12, "Su1a1u2a2u3", 0},
      {"one token less", whole, 11, "Su2a2u3", 2},
      {"the first message is a system prompt and stays", whole, 7, "Su2a2u3", 2},
      {"all but the last", whole, 3, "Su3", 4},
      {"without a system prompt", whole.subspan(1), 6, "u2a2u3", 2},
      {"a turn has more messages than two", tools, 4, "u2", 3},
      {"the last message stays, whatever its role", answered, 3, "a1", 1},
      {"nothing at all", {}, 8, "", 0},
      {"too long alone", whole, 2, "the message has 3 tokens, and the context 2", 0},
      {"one message, too long", whole.subspan(5), 1, "the message has 2 tokens, and the context 1",
       0},
  };
  for (const auto& r : rows) {
    const auto made = fit("raw", tokens, r.messages, false, r.context);
    EXPECT_TRUE(text_of(tokens, made).starts_with(r.expected))
        << r.why << ": " << text_of(tokens, made);
    if (made)
      EXPECT_EQ(made->left_out, r.left_out) << r.why;
    else
      EXPECT_EQ(made.error().status, BITNET_CONTEXT_FULL) << r.why;
  }
}

TEST(chat_fitting, a_long_history_leaves_out_no_more_than_it_must) {
  const auto tokens = bytes_of_text("");
  std::vector<message> talk = {{"system", "S"}};
  for (int i = 0; i < 200; ++i) {
    talk.push_back({"user", "qq"});
    talk.push_back({"assistant", "aa"});
  }
  talk.push_back({"user", "?"});
  for (const uint64_t room : {2, 3, 5, 6, 9, 10, 11, 100, 399, 400, 798, 799, 800, 801, 802}) {
    const auto made = fit("raw", tokens, talk, false, room + std::min<uint64_t>(64, room / 7));
    ASSERT_TRUE(made) << room;
    const uint64_t bound = room + std::min<uint64_t>(64, room / 7);
    const auto fits = [&](uint64_t n) { return n + std::min<uint64_t>(64, bound / 8) <= bound; };
    EXPECT_TRUE(fits(made->ids.size())) << room;
    EXPECT_TRUE(made->left_out == 0 || !fits(made->ids.size() + 4))
        << room << ": a turn would have fitted";
    EXPECT_EQ(made->left_out % 2, 0U);
  }
}

TEST(chat_fitting, says_what_the_template_says) {
  const message one[] = {{"user", "x"}};
  const auto made = fit("model", bytes_of_text("{{ raise_exception('no') }}"), one, false, 8);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, BITNET_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace bitnet::chat
