#pragma once
// Generations on rows that a test writes, over a small vocabulary: no session, no device.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../tokenizer/vocabularies.hpp"
#include "generate/generation.hpp"
#include "generate/text_tokens.hpp"
#include "grammar/gbnf.hpp"

namespace bitnet::generate::testing_support {

namespace vocabularies = tokenizer::testing_support;
using tokenizer::token_type;

using ids = std::vector<int32_t>;

// Ids below 256 are bytes. Beside them words, ends, and tags as control tokens.
inline tokenizer::vocabulary_data with_tags() {
  auto v = vocabularies::bpe_vocabulary();
  for (const char* tag : {"<think>", "</think>", "<tool_call>", "</tool_call>"})
    vocabularies::add(v, tag, token_type::control);
  return v;
}

inline const tokenizer::tokenizer& words() {
  static const auto t = vocabularies::made(with_tags());
  return t;
}

inline int32_t id_of(std::string_view text) {
  return words().find(text).value();
}
inline int32_t eos() {
  return words().eos().value();
}

inline ids bytes_of(std::string_view text) {
  ids out;
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

// Takes the largest logit.
inline options greedy() {
  options o;
  o.sampling.temperature = 0;
  o.sampling.repeat_penalty = 1;
  return o;
}

// A row in which `id` is the largest, then the letter a, then lower ids before higher ones.
inline std::vector<float> row_for(int32_t id, uint32_t n_vocab) {
  std::vector<float> out(n_vocab);
  for (uint32_t i = 0; i < n_vocab; ++i) out[i] = -1e-3F * static_cast<float>(i);
  out['a'] = 0.5F;
  out[static_cast<std::size_t>(id)] = 1;
  return out;
}

inline generation made(const options& o, const ids& history = {1},
                       uint64_t room = generation::no_bound,
                       const tokenizer::tokenizer& tokens = words()) {
  auto g = generation::make(tokens, tokens.size(), o, history, room);
  if (!g) throw std::runtime_error(g.error().message);
  return *std::move(g);
}

inline generation::wish wish_of(generation& g) {
  const auto wish = g.wants();
  if (!wish) throw std::runtime_error(wish.error().message);
  return *wish;
}

// The token that it takes where `id` is the largest. The row is gone behind the call.
inline result<int32_t> give(generation& g, int32_t id,
                            const tokenizer::tokenizer& tokens = words()) {
  const auto logits = row_for(id, tokens.size());
  return g.take({logits, {}, {}});
}

struct generated {
  uint32_t reason = 0, index = BITNET_NONE;
  ids tokens;
  std::string text;         // that options.text got
  std::string taken, rest;  // that last() and finish() gave
  std::size_t n_wishes = 0;
};

// Drives it by `script`, whose last token comes again and again.
inline generated run(options o, const ids& script, const ids& history = {1},
                     uint64_t room = generation::no_bound,
                     const tokenizer::tokenizer& tokens = words()) {
  generated out;
  o.text = [&out](std::string_view text) {
    EXPECT_FALSE(text.empty());
    out.text += text;
    return true;
  };
  auto g = made(o, history, room, tokens);
  while (wish_of(g).more && out.n_wishes < 100) {
    const auto id = give(g, script[std::min(out.n_wishes++, script.size() - 1)], tokens);
    if (!id) throw std::runtime_error(id.error().message);
    EXPECT_EQ(g.last().token, *id);
    EXPECT_EQ(g.so_far().tokens.back(), *id);
    out.taken += g.last().text;
  }
  out.rest = g.finish();
  EXPECT_EQ(g.finish(), "") << "the rest comes once";
  out.reason = g.so_far().stop_reason;
  out.index = g.so_far().stop_index;
  out.tokens = g.so_far().tokens;
  EXPECT_EQ(out.text, out.taken + out.rest);
  return out;
}

inline std::shared_ptr<const grammar::prefix_tree> text_of_words() {
  static const auto tree = text_tokens(words());
  return tree;
}

inline grammar::guide guide_of(std::string_view rules,
                               std::shared_ptr<const grammar::prefix_tree> tree = text_of_words()) {
  auto parsed = grammar::parse_gbnf(rules);
  if (!parsed) throw std::runtime_error(parsed.error().message);
  return {*std::move(parsed), std::move(tree)};
}

}  // namespace bitnet::generate::testing_support
