#pragma once
// Likelihood of texts: log probabilities from logits, and means with their errors.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bitnet/bitnet.h"

namespace bitnet::host::eval {

// Log probabilities of one row of logits, in double precision. The row outlives this object.
class log_softmax {
 public:
  explicit log_softmax(std::span<const float> logits);  // at least one logit
  [[nodiscard]] double operator[](std::size_t token) const {
    return static_cast<double>(logits_[token]) - log_sum_;
  }
  [[nodiscard]] std::size_t best() const { return best_; }  // top token, the first of equal ones
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

// A running mean (Welford) and its standard error s / sqrt(n).
class running_mean {
 public:
  void add(double x);
  [[nodiscard]] uint64_t count() const { return n_; }
  [[nodiscard]] estimate get() const;

 private:
  uint64_t n_ = 0;
  double mean_ = 0, squares_ = 0;  // squares_: sum of squared differences from the mean
};

// Perplexity and bits per byte over tokens added one by one.
class token_tally {
 public:
  // `nll`: minus the log probability, in nats. `bytes`: what the token adds to the text.
  void add(double nll, std::size_t bytes);
  [[nodiscard]] uint64_t tokens() const { return nll_.count(); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] estimate nll() const { return nll_.get(); }
  // exp of the mean; its error is the mean's error times exp of the mean.
  [[nodiscard]] estimate perplexity() const;
  // Sum of bits over sum of bytes, with the error of a ratio of sums; bytes() must not be 0.
  [[nodiscard]] estimate bits_per_byte() const;

 private:
  running_mean nll_;
  uint64_t bytes_ = 0;
  double sum_ = 0, squares_ = 0, products_ = 0, bytes_squares_ = 0;
};

// llama-perplexity's rule. Chunk i has the tokens from i * n_context on; begin-of-sequence replaces
// its first token if the model wants it. Tokens before first_scored() only give context; each later
// one is scored by the logits of the token before it.
struct chunk_rule {
  uint32_t n_context = 0;  // at least 4

  [[nodiscard]] uint32_t first_scored() const { return n_context / 2 + 1; }
  [[nodiscard]] uint32_t n_scored() const { return n_context - first_scored(); }  // per chunk
  // Number of whole chunks in `n_tokens`; at most `most`, unless that is negative.
  [[nodiscard]] uint64_t n_chunks(uint64_t n_tokens, int64_t most) const;
};

}  // namespace bitnet::host::eval
