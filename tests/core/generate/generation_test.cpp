// What ends a generation, and in which order it looks for it.
#include "generate/generation.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "written_rows.hpp"

namespace bitnet::generate {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): written rows

constexpr auto no_bound = generation::no_bound;
const int32_t end = eos();
constexpr int32_t a = 'a', b = 'b';

struct ending {
  const char* why;
  int64_t max_tokens;
  uint64_t room;
  std::vector<std::string> stop_strings;
  ids stop_tokens;
  bool ignore_end;
  const char* rules;  // nullptr: no grammar
  ids script;
  uint32_t reason, index;
  ids tokens;
  const char* text;
};

const ending endings[] = {
    {"no token is wanted",
     0,
     no_bound,
     {},
     {},
     false,
     nullptr,
     {a},
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     {},
     ""},
    {"the length",
     2,
     no_bound,
     {},
     {},
     false,
     nullptr,
     {a},
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     {a, a},
     "aa"},
    {"no bound: the end token",
     -1,
     no_bound,
     {},
     {},
     false,
     nullptr,
     {a, a, end},
     BITNET_STOP_EOS,
     BITNET_NONE,
     {a, a, end},
     "aa"},
    {"the end token is the first one",
     -1,
     no_bound,
     {},
     {},
     false,
     nullptr,
     {end},
     BITNET_STOP_EOS,
     BITNET_NONE,
     {end},
     ""},
    {"the end token is the last one that the length lets come",
     2,
     no_bound,
     {},
     {},
     false,
     nullptr,
     {a, end},
     BITNET_STOP_EOS,
     BITNET_NONE,
     {a, end},
     "a"},
    {"another token that ends",
     -1,
     no_bound,
     {},
     {},
     false,
     nullptr,
     {id_of("<|eot_id|>")},
     BITNET_STOP_EOS,
     BITNET_NONE,
     {id_of("<|eot_id|>")},
     ""},
    {"ends are ignored: the next best comes",
     2,
     no_bound,
     {},
     {},
     true,
     nullptr,
     {end},
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     {a, a},
     "aa"},
    {"a stop token by its place",
     -1,
     no_bound,
     {},
     {7, b},
     false,
     nullptr,
     {a, b},
     BITNET_STOP_TOKEN,
     1,
     {a, b},
     "a"},
    {"a stop token that is listed twice: the first place",
     -1,
     no_bound,
     {},
     {b, b},
     false,
     nullptr,
     {b},
     BITNET_STOP_TOKEN,
     0,
     {b},
     ""},
    {"a stop token that is an end token, too",
     -1,
     no_bound,
     {},
     {end},
     false,
     nullptr,
     {end},
     BITNET_STOP_TOKEN,
     0,
     {end},
     ""},
    {"stop tokens that are none of the vocabulary",
     1,
     no_bound,
     {},
     {-5, 1 << 30},
     false,
     nullptr,
     {a},
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     {a},
     "a"},
    {"a stop string over three tokens",
     -1,
     no_bound,
     {"zz", "END"},
     {},
     false,
     nullptr,
     bytes_of("x END"),
     BITNET_STOP_STRING,
     1,
     bytes_of("x END"),
     "x "},
    {"a stop string that is whole at the length",
     3,
     no_bound,
     {"END"},
     {},
     false,
     nullptr,
     bytes_of("END"),
     BITNET_STOP_STRING,
     0,
     bytes_of("END"),
     ""},
    {"a stop string that is not whole at the length comes out",
     2,
     no_bound,
     {"END"},
     {},
     false,
     nullptr,
     bytes_of("END"),
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     bytes_of("EN"),
     "EN"},
    {"a stop string that is not whole at the end token comes out",
     -1,
     no_bound,
     {"END"},
     {},
     false,
     nullptr,
     {'E', end},
     BITNET_STOP_EOS,
     BITNET_NONE,
     {'E', end},
     "E"},
    {"the context has no room",
     -1,
     0,
     {},
     {},
     false,
     nullptr,
     {a},
     BITNET_STOP_CONTEXT,
     BITNET_NONE,
     {},
     ""},
    {"no token is wanted, and there is no room",
     0,
     0,
     {},
     {},
     false,
     nullptr,
     {a},
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     {},
     ""},
    {"the context gets full",
     -1,
     3,
     {},
     {},
     false,
     nullptr,
     {a},
     BITNET_STOP_CONTEXT,
     BITNET_NONE,
     {a, a, a},
     "aaa"},
    {"the context gets full at the length",
     3,
     3,
     {},
     {},
     false,
     nullptr,
     {a},
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     {a, a, a},
     "aaa"},
    {"the last token that has room ends it",
     -1,
     1,
     {},
     {},
     false,
     nullptr,
     {end},
     BITNET_STOP_EOS,
     BITNET_NONE,
     {end},
     ""},
    {"what is held comes out of a full context",
     -1,
     1,
     {"ab"},
     {},
     false,
     nullptr,
     {a},
     BITNET_STOP_CONTEXT,
     BITNET_NONE,
     {a},
     "a"},
    {"the grammar is whole and no end may come",
     -1,
     no_bound,
     {},
     {},
     true,
     "root ::= \"ab\"",
     {b},
     BITNET_STOP_GRAMMAR,
     BITNET_NONE,
     {a, b},
     "ab"},
    {"the grammar is whole: an end comes, whatever is larger",
     -1,
     no_bound,
     {},
     {},
     false,
     "root ::= \"ab\"",
     {a, b, a},
     BITNET_STOP_EOS,
     BITNET_NONE,
     {a, b, end},
     "ab"},
    {"the grammar is whole: a stop token comes",
     -1,
     no_bound,
     {},
     {'q'},
     true,
     "root ::= \"ab\"",
     {a, b, a},
     BITNET_STOP_TOKEN,
     0,
     {a, b, 'q'},
     "ab"},
    {"the grammar may end, and the model goes on",
     3,
     no_bound,
     {},
     {},
     false,
     "root ::= \"a\"+",
     {a},
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     {a, a, a},
     "aaa"},
    {"the grammar is whole at the length",
     2,
     no_bound,
     {},
     {},
     true,
     "root ::= \"ab\"",
     {a, b},
     BITNET_STOP_LENGTH,
     BITNET_NONE,
     {a, b},
     "ab"},
    {"the grammar is whole in a full context",
     -1,
     2,
     {},
     {},
     true,
     "root ::= \"ab\"",
     {a, b},
     BITNET_STOP_GRAMMAR,
     BITNET_NONE,
     {a, b},
     "ab"},
    {"the grammar lets nothing come at all",
     -1,
     no_bound,
     {},
     {},
     true,
     "root ::= \"\"",
     {a},
     BITNET_STOP_GRAMMAR,
     BITNET_NONE,
     {},
     ""},
    {"the same where no token is wanted",
     0,
     no_bound,
     {},
     {},
     true,
     "root ::= \"\"",
     {a},
     BITNET_STOP_GRAMMAR,
     BITNET_NONE,
     {},
     ""},
    {"a stop string in what the grammar wants",
     -1,
     no_bound,
     {"b"},
     {},
     true,
     "root ::= \"abc\"",
     {a, b},
     BITNET_STOP_STRING,
     0,
     {a, b},
     "a"},
};

TEST(generation, ends_for_each_reason_in_their_order) {
  for (const ending& r : endings) {
    SCOPED_TRACE(r.why);
    options o = greedy();
    o.max_tokens = r.max_tokens;
    o.stop_strings = r.stop_strings;
    o.stop_tokens = r.stop_tokens;
    o.ignore_end = r.ignore_end;
    std::optional<grammar::guide> guide;
    if (r.rules != nullptr) o.grammar = &guide.emplace(guide_of(r.rules));
    const generated got = run(o, r.script, {1}, r.room);
    EXPECT_EQ(got.reason, r.reason);
    EXPECT_EQ(got.index, r.index);
    EXPECT_EQ(got.tokens, r.tokens);
    EXPECT_EQ(got.n_wishes, r.tokens.size()) << "a row for each token and none more";
    EXPECT_EQ(got.text, r.text);
  }
}

TEST(generation, can_be_cancelled_at_any_point) {
  enum point { at_first, behind_wants, behind_take, behind_the_end };
  const struct {
    const char* why;
    point when;
    uint32_t reason;
    std::string text;
  } rows[] = {
      {"before anything", at_first, BITNET_STOP_CANCELLED, ""},
      {"while its row is computed", behind_wants, BITNET_STOP_CANCELLED, ""},
      {"behind a token, whose text is held", behind_take, BITNET_STOP_CANCELLED, "a"},
      {"too late", behind_the_end, BITNET_STOP_LENGTH, "a"},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    options o = greedy();
    o.stop_strings = {"ab"};
    o.max_tokens = r.when == behind_the_end ? 1 : -1;
    auto g = made(o);
    if (r.when >= behind_wants) {
      ASSERT_TRUE(wish_of(g).more);
    }
    if (r.when >= behind_take) {
      ASSERT_TRUE(give(g, 'a'));
    }
    if (r.when == behind_the_end) {
      ASSERT_FALSE(wish_of(g).more);
    }
    g.cancel();
    EXPECT_TRUE(g.ended());
    EXPECT_EQ(g.so_far().stop_reason, r.reason);
    EXPECT_EQ(g.so_far().stop_index, BITNET_NONE);
    EXPECT_FALSE(wish_of(g).more);
    EXPECT_FALSE(give(g, 'b')) << "a row that comes late is not taken";
    EXPECT_EQ(g.so_far().tokens.size(), r.text.size());
    EXPECT_EQ(g.finish(), r.text);
  }
}

TEST(generation, is_ended_from_outside_once) {
  auto g = made(greedy());
  g.end(BITNET_STOP_CONTEXT);
  g.cancel();
  EXPECT_EQ(g.so_far().stop_reason, BITNET_STOP_CONTEXT);
}

TEST(generation, takes_no_row_that_it_did_not_wish_for) {
  auto g = made(greedy());
  const auto rejected = [&] {
    const auto id = give(g, 'a');
    return !id && id.error().status == BITNET_INTERNAL;
  };
  EXPECT_TRUE(rejected()) << "before the first wish";
  ASSERT_TRUE(wish_of(g).more);
  ASSERT_TRUE(give(g, 'a'));
  EXPECT_TRUE(rejected()) << "a second row for one wish";
  EXPECT_EQ(g.so_far().tokens, ids{'a'});
}

// A sequence that loses its place before its row is there is asked again later.
TEST(generation, answers_the_same_until_its_row_comes) {
  auto guide = guide_of("root ::= \"abc\"");
  options o = greedy();
  o.ignore_end = true;
  o.grammar = &guide;
  auto g = made(o);
  std::string text;
  for (int n = 0; n < 3; ++n) {
    const auto first = wish_of(g);
    for (int i = 0; i < 3; ++i) {
      const auto again = wish_of(g);
      EXPECT_EQ(again.more, first.more);
      EXPECT_EQ(again.top_logits, first.top_logits);
    }
    ASSERT_TRUE(give(g, 'x'));
    text += g.last().text;
  }
  EXPECT_EQ(text, "abc");
  EXPECT_FALSE(wish_of(g).more);
}

}  // namespace
}  // namespace bitnet::generate
