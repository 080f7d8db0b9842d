#pragma once
// The two-stage output head: the largest logits, exactly as the full head computes them, for half
// or a quarter of the bytes.
//
// First all rows from a copy of the weights in fewer bits, each with a bound on how far the full
// head's value can be; then, from the weights themselves, the rows that can still be among the
// largest.
//
// Bound    with w = d q + r and x = s z + e (q int8, z 15 bits): w x = d s (q z) + r x + d q e, so
//          |w x - d s (q z)| <= |r| |x| + |d q| |e| by Cauchy-Schwarz. The f32 sum of the full head
//          is off by less than (k / 16 + 16) 2^-24 |w| |x| more. All norms are taken a little
//          larger than computed.
// Margin   4 bits: q is in [-7, 7], d makes r orthogonal to w, and r and e are taken to have no
//          direction in common with x and d q: each product is then normal, with the Cauchy-Schwarz
//          bound over sqrt(k) as its deviation, and six of those are the margin. Likely, not
//          proven: a largest logit may be missed.
// Answer   with T the n-th largest lower bound, a row whose upper bound is below T has n rows above
//          it whatever the rounding: its logit becomes -infinity. All others are recomputed.
// Memory   the copy, packed_form of the weight: a byte or half of one for each of its elements,
//          rows padded to 64 bytes, then for each row d, |r| and |d q| + |r| in f32, in three runs.
// Threads  one step at a time; the workers of a step share it.

#include <memory>
#include <vector>

#include "bitnet/sdk/handle.hpp"
#include "kernels/variants.hpp"
#include "ops.hpp"

namespace bitnet::cpu {

enum class head_bits : uint8_t { eight, four };

class top_head {
 public:
  static constexpr uint32_t max_top = 8192;    // more are left to the full head
  static constexpr uint32_t max_outputs = 32;  // rows of one step; the same

  // Whether there is a two-stage form for these weights.
  static bool fits(const sdk::weight& w);

  // The copy: 0 bytes where there is no two-stage form. The same bytes by every instruction set.
  static constexpr const char* layout_id(head_bits bits) {
    return bits == head_bits::four ? "cpu/i4-rows+errors/1" : "cpu/i8-rows+errors/1";
  }
  static uint64_t packed_bytes(const sdk::weight& w, head_bits bits);
  static uint64_t row_bytes(const sdk::weight& w, head_bits bits);  // of the codes of a row
  static void pack(const sdk::weight& w, head_bits bits, const isa_form& isa, uint64_t first,
                   uint64_t last, uint8_t* out);

  // Throws std::bad_alloc. `w` outlives it; its packed form is there when a step runs.
  top_head(const sdk::weight& w, head_bits bits, uint32_t workers);

  // The phases of a step, in this order; all workers meet between them.
  void take(uint64_t output, const float* x);  // (k)
  // Approximates rows [first, last) of each output into y (outputs, rows), and notes the `top`
  // largest lower bounds. The copy is read once for all outputs. `streams`: for a token by itself,
  // which copies what it reads where that is wanted (row_copies.hpp).
  void approximate(const isa_form& isa, uint32_t worker, uint64_t outputs, uint32_t top,
                   uint64_t first, uint64_t last, float* y, bool streams = false);
  // How far the full head's logit of `row` can be from the approximation.
  [[nodiscard]] float bound(uint64_t output, uint64_t row) const {
    return bound(rows_of(w_, bits_), states_[output], row);
  }
  // Replaces them by the exact logit or -infinity; x (outputs, k). Returns how many are exact.
  uint64_t refine(const isa_form& isa, uint32_t workers, uint64_t outputs, uint32_t top,
                  const float* x, uint64_t first, uint64_t last, float* y) const;

 private:
  struct state {                // of one output's activations
    double scale = 0;           // s
    float size = 0, error = 0;  // |x|, |e| + (k / 16 + 16) 2^-24 |x|
    bool finite = true;
  };
  struct copied_rows {
    const uint8_t* codes;  // (rows, stride)
    uint64_t stride;
    const float *scales, *errors, *sizes;  // (rows): d, |r|, |d q| + |r|
  };
  static copied_rows rows_of(const sdk::weight& w, head_bits bits);
  float bound(const copied_rows& rows, const state& s, uint64_t row) const {
    return certainty_ * (rows.errors[row] * s.size + rows.sizes[row] * s.error);
  }
  float* largest(uint32_t worker, uint64_t output) {
    return largest_.get() + (uint64_t{worker} * max_outputs + output) * max_top;
  }

  const sdk::weight& w_;
  const head_bits bits_;
  const float certainty_;  // of the Cauchy-Schwarz bound
  // (workers, max_outputs, max_top), the least one first; most pages are never used
  std::unique_ptr<float[]> largest_;
  state states_[max_outputs];
  std::vector<int16_t> z_;          // (max_outputs, padded k), and so are its two parts
  std::vector<int8_t> high_, low_;  // z = 128 high + low
  int64_t sums_[max_outputs] = {};  // of z
};

}  // namespace bitnet::cpu
