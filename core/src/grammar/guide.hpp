#pragma once
// Keeps a text to a grammar, token by token: says which tokens may come next, and takes the one
// that came.
//
// Cost    of a state that is met for the first time: a walk over the vocabulary's tree; of one that
//         is met again: a copy of its mask.
// Owner   of masks and states, at most 32 MiB each before a walk; beyond that, all but the current
//         state are forgotten.
// Errors  BITNET_UNSUPPORTED if the grammar takes more time or memory than a walk may; the guide is
//         of no use then.
// Threads one at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "grammar/automaton.hpp"
#include "grammar/prefix_tree.hpp"

namespace bitnet::grammar {

// Bits by id, in words of 64; bits past the vocabulary are 0.
using token_bits = std::vector<uint64_t>;

class guide {
 public:
  guide(rule_set rules, std::shared_ptr<const prefix_tree> tokens, const bounds& most = {});

  // Begins a text. `ends` are tokens that end it: they may come where the text is complete.
  void begin(std::span<const int32_t> ends);
  // Which tokens may come next; valid until the next call.
  result<std::span<const uint64_t>> allowed();
  // Whether the text may end here.
  [[nodiscard]] bool is_complete() const { return states_.is_complete(now_); }
  [[nodiscard]] std::size_t n_masks() const { return masks_.size(); }
  // Continues the text with the bytes of an allowed token that is no end.
  result<void> accept(std::string_view bytes);

 private:
  const token_bits& mask_of(automaton::state s);
  void walk(automaton::state s, const prefix_tree& tokens, token_bits& mask);

  automaton states_;
  automaton::state now_;
  std::shared_ptr<const prefix_tree> tokens_;
  std::unordered_map<automaton::state, token_bits> masks_;
  std::vector<automaton::state> path_;  // the states of a walk, by depth
  token_bits ends_, given_;
};

}  // namespace bitnet::grammar
