#pragma once
// Keeps a text to a grammar, token by token: says which tokens may come next, and takes the one
// that came.
//
// Cost    of a state of the grammar that is met for the first time, a walk over the vocabulary's
//         tree; of one that is met again, a copy of its mask.
// Owner   of masks and states of at most 32 MiB each before a walk; where there are more, all but
//         the state that the text is in are forgotten.
// Errors  BITNET_UNSUPPORTED when the grammar takes more time or memory than a walk may; it is of
//         no use then.
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

// Bits by id, in words of 64; those behind the vocabulary are 0.
using token_bits = std::vector<uint64_t>;

class guide {
 public:
  guide(rule_set rules, std::shared_ptr<const prefix_tree> tokens, const bounds& most = {});

  // At the begin of a text. `ends` are tokens that end it: they may come where the text is whole.
  void begin(std::span<const int32_t> ends);
  // Which tokens may come next; valid until it is asked again.
  result<std::span<const uint64_t>> allowed();
  // Whether the text may end here.
  [[nodiscard]] bool is_complete() const { return states_.is_complete(now_); }
  [[nodiscard]] std::size_t n_masks() const { return masks_.size(); }
  // Goes on by the bytes of a token that is allowed and no end.
  result<void> accept(std::string_view bytes);

 private:
  const token_bits& mask_of(automaton::state s);
  void walk(automaton::state s, const prefix_tree& tokens, token_bits& mask);

  automaton states_;
  automaton::state now_;
  std::shared_ptr<const prefix_tree> tokens_;
  std::unordered_map<automaton::state, token_bits> masks_;
  std::vector<automaton::state> path_;  // of a walk, by depth
  token_bits ends_, given_;
};

}  // namespace bitnet::grammar
