#pragma once
// From a row of logits to the next token.
//
// Order   forbidden tokens are left out, logit bias, penalties, DRY, top-n-sigma, top-k, typical,
//         top-p, min-p, XTC, temperature, draw. Mirostat stands in place of the stages from
//         top-n-sigma to XTC, behind the temperature. Temperature 0 takes the highest logit
//         after DRY, of equals the lowest id, and draws nothing.
// Same    seed and logits, same token on every platform: the generator and the exponential function
//         are written out here in exact IEEE operations, and sums are formed in one fixed order.
// Cost    O(n_vocab), or of the logits that are listed, and a sort of the candidates that top-k or
//         else min-p leaves; without both, top-p sorts all, as typical does without top-k. DRY:
//         repetition.hpp.
// Errors  BITNET_INVALID_ARGUMENT for parameters out of range or when nothing is left to choose;
//         BITNET_INTERNAL for a NaN or infinite logit, naming its position.
// Threads one at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "tables/sampling.hpp"

namespace bitnet::sampling {

class breakers;

// Defaults are llama.cpp's. Meaning and units: bitnet_sampling in bitnet.h.
struct parameters {
  uint32_t seed = 0;
#define BITNET_SAMPLING_MEMBER(type, name, initial, ...) type name = static_cast<type>(initial);
  BITNET_SAMPLING_PARAMETERS(BITNET_SAMPLING_MEMBER)
#undef BITNET_SAMPLING_MEMBER
  std::vector<std::pair<int32_t, float>> logit_bias;  // token, added to its logit; -inf = never
  std::shared_ptr<const breakers> dry_breakers;       // of DRY; nullptr: none
};

struct probability {
  int32_t token;
  double value;
};

class sampler {
 public:
  static result<sampler> make(const parameters& p, uint32_t n_vocab);
  sampler(sampler&&) noexcept;
  sampler& operator=(sampler&&) noexcept;
  ~sampler();

  // logits: (n_vocab). -infinity = never. `allowed`: a bit for each id, in words of 64; tokens
  // whose bit is 0 never come; empty: all may.
  result<int32_t> sample(std::span<const float> logits, std::span<const uint64_t> allowed = {});
  // As sample(), if only the needed() largest logits are there, or more of them: (n) each, in any
  // order. The others count as -infinity. Its cost does not depend on n_vocab.
  result<int32_t> sample_listed(std::span<const int32_t> ids, std::span<const float> logits,
                                std::span<const uint64_t> allowed = {});
  // How many of the largest logits the next sample() needs: the others may be -infinity and the
  // result is the same. 0: all of them. If `allowed` leaves tokens out, as many more are needed.
  [[nodiscard]] uint32_t needed() const;
  // Counts a token of the sequence, prompt or generated, for the penalties.
  void accept(int32_t token);
  // Goes back to the seed and to an empty sequence.
  void reset();
  // The candidates that the last sample() drew from, their sum 1; empty if it took the highest
  // logit.
  [[nodiscard]] std::vector<probability> drawn_from() const;

 private:
  struct contents;
  explicit sampler(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::sampling
