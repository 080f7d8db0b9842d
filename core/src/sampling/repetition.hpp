#pragma once
// DRY ("don't repeat yourself"): makes a token less likely if it would continue a repetition of
// earlier text, the more so the longer the repetition is.
//
// Cost     linear in the tokens that are looked at, last_n or the whole text, for each token (the Z
//          algorithm); nothing if no token was added. Memory: 4 bytes for each of 2 last_n
//          tokens, and for each token of the vocabulary.
// Source   p-e-w, "DRY: A modern repetition penalty that reliably prevents looping",
//          text-generation-webui pull request 5677; sequence breakers of several tokens as in
//          koboldcpp and llama.cpp.
// Threads  one at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace bitnet::sampling {

// Token sequences at which a repetition ends.
class breakers {
 public:
  // An empty `tail`: the head alone is a breaker, and never gets a penalty. Fast if heads come in
  // ascending order.
  void add(int32_t head, std::vector<int32_t> tail);
  [[nodiscard]] bool is_one(int32_t token) const;
  // The tokens of the longest breaker that begins at recent[at], where recent[0] is the last token
  // of the text; 0: none.
  [[nodiscard]] std::size_t length_at(std::span<const int32_t> recent, std::size_t at) const;
  [[nodiscard]] std::size_t count() const { return all_.size(); }

 private:
  struct one {
    int32_t head;
    uint32_t tail;  // index in tails_
  };
  [[nodiscard]] std::span<const one> of(int32_t head) const;

  std::vector<uint64_t> heads_;  // a bit for each token that begins a breaker, up to the last
  std::vector<one> all_;         // by their heads; 8 bytes each: a list of texts may make 10^5
  std::map<std::vector<int32_t>, uint32_t> numbers_;  // by tail: its index in tails_
  std::vector<std::vector<int32_t>> tails_;
};

class repetition {
 public:
  struct options {
    float multiplier, base;
    int32_t allowed_length;  // tokens that may be repeated without a penalty, >= 1
    int32_t last_n;          // tokens that are looked at; -1: all
  };
  // `at` may be nullptr: nothing breaks a repetition.
  repetition(const options& o, uint32_t n_vocab, std::shared_ptr<const breakers> at);

  // `token` is below n_vocab.
  void add(int32_t token);
  void clear();

  struct penalty {
    int32_t token;
    float value;  // to be subtracted, <= 1e30
  };
  // Penalties for the next token, each token at most once. Valid until the next add().
  [[nodiscard]] std::span<const penalty> penalties();

 private:
  void find();
  [[nodiscard]] std::size_t limit() const;
  void measure();

  options options_;
  uint32_t n_vocab_;
  std::shared_ptr<const breakers> breakers_;
  std::vector<int32_t> tokens_;  // the last ones, in order
  bool is_found_ = true;         // penalties_ are those of tokens_
  std::vector<int32_t> recent_;  // the tokens that are looked at, the last one first
  std::vector<uint32_t> equal_;  // [k]: how many first tokens recent_ and recent_ from k on share
  // (n_vocab): the longest repetition that a token would continue; made when first needed.
  std::vector<uint32_t> longest_;
  std::vector<penalty> penalties_;
};

}  // namespace bitnet::sampling
