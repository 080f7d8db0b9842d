#pragma once
// How likely a model holds a text: log probabilities of logits, and what a mean of them is worth.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bitnet/bitnet.h"

namespace bitnet::host::eval {

// Log probabilities of one row of logits, in double precision. The row outlives it.
class log_softmax {
 public:
  explicit log_softmax(std::span<const float> logits);  // at least one
  [[nodiscard]] double operator[](std::size_t token) const {
    return static_cast<double>(logits_[token]) - log_sum_;
  }
  [[nodiscard]] std::size_t best() const { return best_; }  // the first of equal ones
  [[nodiscard]] std::size_t size() const { return logits_.size(); }

 private:
  std::span<const float> logits_;
  std::size_t best_ = 0;
  double log_sum_ = 0;
};

// A value and its standard error.
struct estimate {
  double value = 0, error = 0;
};

// The mean of values that come one by one (Welford), and its standard error: s / sqrt(n).
class running_mean {
 public:
  void add(double x);
  [[nodiscard]] uint64_t count() const { return n_; }
  [[nodiscard]] estimate get() const;

 private:
  uint64_t n_ = 0;
  double mean_ = 0, squares_ = 0;  // of differences from the mean
};

// Perplexity and bits per byte of tokens that are given one by one.
class token_tally {
 public:
  // `nll` in nats: minus the log probability; `bytes` that the token stands for.
  void add(double nll, std::size_t bytes);
  [[nodiscard]] uint64_t tokens() const { return nll_.count(); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] estimate nll() const { return nll_.get(); }
  // exp of the mean; its error is that of the mean times it.
  [[nodiscard]] estimate perplexity() const;
  // Sum of bits over sum of bytes, with the error of a ratio of sums; bytes() is not 0.
  [[nodiscard]] estimate bits_per_byte() const;

 private:
  running_mean nll_;
  uint64_t bytes_ = 0;
  double sum_ = 0, squares_ = 0, products_ = 0, bytes_squares_ = 0;
};

// llama-perplexity's rule. Chunk i has the tokens from i * n_context on; its first token is
// replaced by begin-of-sequence where the model asks for it. Of each chunk the first half is read
// only: the tokens at first_scored() and behind are scored, each by the logits of the token before
// it.
struct chunk_rule {
  uint32_t n_context = 0;  // at least 4

  [[nodiscard]] uint32_t first_scored() const { return n_context / 2 + 1; }
  [[nodiscard]] uint32_t n_scored() const { return n_context - first_scored(); }  // of a chunk
  // Whole chunks in so many tokens, at most `most` where that is not negative.
  [[nodiscard]] uint64_t n_chunks(uint64_t n_tokens, int64_t most) const;
};

}  // namespace bitnet::host::eval
