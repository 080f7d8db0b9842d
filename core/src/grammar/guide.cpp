#include "grammar/guide.hpp"

#include <utility>

namespace bitnet::grammar {
namespace {

constexpr uint64_t most_mask_bytes = uint64_t{32} << 20;
constexpr uint64_t most_state_bytes = uint64_t{32} << 20;  // that stay from token to token

void set(token_bits& of, int32_t id) {
  of[static_cast<uint32_t>(id) / 64] |= uint64_t{1} << (static_cast<uint32_t>(id) % 64);
}

}  // namespace

guide::guide(rule_set rules, std::shared_ptr<const prefix_tree> tokens, const bounds& most)
    : states_(std::move(rules), most),
      now_(states_.start()),
      tokens_(std::move(tokens)),
      path_(tokens_->longest() + 1),
      ends_((tokens_->n_vocab() + 63) / 64),
      given_(ends_.size()) {}

void guide::begin(std::span<const int32_t> ends) {
  now_ = states_.start();
  ends_.assign(ends_.size(), 0);
  for (const int32_t id : ends) set(ends_, id);
}

result<std::span<const uint64_t>> guide::allowed() {
  states_.begin_work();
  if (masks_.size() * given_.size() * sizeof(uint64_t) > most_mask_bytes ||
      states_.bytes() > most_state_bytes) {
    masks_.clear();
    now_ = states_.forget_others(now_);
  }
  given_ = mask_of(now_);
  if (const auto& trouble = states_.trouble()) return std::unexpected(*trouble);
  if (is_complete())
    for (std::size_t i = 0; i < given_.size(); ++i) given_[i] |= ends_[i];
  return given_;
}

const token_bits& guide::mask_of(automaton::state s) {
  const auto [at, is_new] = masks_.try_emplace(s);
  token_bits& mask = at->second;
  if (!is_new) return mask;
  const auto plain = states_.plain_characters_from(s, prefix_tree::longest_plain);
  if (plain.exact || plain.length == prefix_tree::longest_plain) {
    const auto bits = tokens_->plain(plain.length);
    mask.assign(bits.begin(), bits.end());
    walk(s, tokens_->others(), mask);
  } else {
    mask.resize(given_.size());
    walk(s, *tokens_, mask);
  }
  return mask;
}

// Adds the tokens of a tree that may come in a state.
void guide::walk(automaton::state s, const prefix_tree& tokens, token_bits& mask) {
  const auto nodes = tokens.nodes();
  path_[0] = s;
  for (std::size_t i = 0; i < nodes.size();) {
    const auto& node = nodes[i];
    const automaton::state to = states_.next(path_[node.depth - 1U], node.byte);
    if (to == automaton::dead) {
      i = node.behind;
      continue;
    }
    path_[node.depth] = to;
    for (const int32_t id : tokens.tokens_at(i)) set(mask, id);
    ++i;
  }
}

result<void> guide::accept(std::string_view bytes) {
  now_ = states_.next(now_, bytes);
  if (const auto& trouble = states_.trouble()) return std::unexpected(*trouble);
  if (now_ == automaton::dead)
    return fail(BITNET_INTERNAL, "a token came that the grammar does not allow");
  return {};
}

}  // namespace bitnet::grammar
