#pragma once
// The two-stage output head: the largest logits, exactly as the full head computes them, for half,
// three eighths or a quarter of the bytes.
//
// First it approximates all rows from a copy of the weights in fewer bits, with a bound on the
// distance from the full head's value; then it computes, from the weights themselves, the rows that
// can still be among the largest.
//
// Bound    with w = d q + r and x = s z + e (q int8, z 15 bits): w x = d s (q z) + r x + d q e, so
//          |w x - d s (q z)| <= |r| |x| + |d q| |e| by Cauchy-Schwarz. The f32 sum of the full head
//          is off by less than (k / 16 + 16) 2^-24 |w| |x| more. All norms are taken a little
//          larger than computed, and a little is added for what f32 cannot hold of a square.
// Six      bits: as above, with D, the scale of each element, instead of d. r is three times as
//          large, so two steps tighten the bound. The few large elements of x are bounded one by
//          one, since no element of r exceeds half a step, so |x| of the others is small. The rows
//          that look largest get their exact logits first, and all others are compared with those.
// Margin   4 bits: q is in [-7, 7], and d makes r orthogonal to w. r and e are assumed to have no
//          direction in common with x and d q. Each product is then normal, with the Cauchy-Schwarz
//          bound over sqrt(k) as its deviation, and six deviations are the margin. This is likely,
//          not proven: a largest logit may be missed.
// Answer   T is the n-th largest lower bound, or with 6 bits the least of n exact logits. A row
//          whose upper bound is below T has n rows above it whatever the rounding: its logit
//          becomes -infinity. All others are recomputed.
// Memory   the copy, packed_form of the weight: a byte, three quarters or half of one for each
//          element; rows padded to 64 bytes, with 6 bits to 192 and followed by the multipliers of
//          each row, (rows, 16); then d, |r| and |d q| + |r| of all rows in f32, one array after
//          another.
// Threads  one step at a time; the workers of a step share it.

#include <memory>

#include "bitnet/sdk/handle.hpp"
#include "kernels/variants.hpp"
#include "ops.hpp"

namespace bitnet::cpu {

enum class top_head_bits : uint8_t { eight, six, four };

// Bits of the copy: for `--head exact`, then for `--head fast`.
constexpr top_head_bits exact_bits(const isa_form& isa) {
  return isa.linear_i6.run != nullptr ? top_head_bits::six : top_head_bits::eight;
}
constexpr top_head_bits fast_bits(const isa_form&) {
  return top_head_bits::four;
}

class top_head {
 public:
  // Each worker has room for max_top candidates of max_outputs rows.
  static constexpr uint32_t max_top = 8192;    // steps with more use the full head
  static constexpr uint32_t max_outputs = 32;  // output rows that take the phases together

  // True if these weights have a two-stage form.
  static bool fits(const sdk::weight& w);

  // The copy: 0 bytes if there is no two-stage form. Every instruction set makes the same bytes.
  static constexpr const char* layout_id(top_head_bits bits) {
    return bits == top_head_bits::four  ? "cpu/i4-rows+errors/1"
           : bits == top_head_bits::six ? "cpu/i6-row-pairs+errors/1"
                                        : "cpu/i8-rows+errors/1";
  }
  static uint64_t packed_bytes(const sdk::weight& w, top_head_bits bits);
  static uint64_t row_bytes(const sdk::weight& w, top_head_bits bits);  // of a row's codes
  static void pack(const sdk::weight& w, top_head_bits bits, const isa_form& isa, uint64_t first,
                   uint64_t last, uint8_t* out);

  // Throws std::bad_alloc. `w` outlives it; its packed form exists when a step runs.
  top_head(const sdk::weight& w, top_head_bits bits, uint32_t workers);

  // The phases of a step, in this order, with a barrier between them. A step with more than
  // max_outputs rows repeats the phases, with a barrier between the repetitions.
  void take(uint64_t output, const float* x);  // (k)
  // Approximates rows [first, last) of each output into y (outputs, rows), and records the `top`
  // largest lower bounds; with 6 bits `first` is even, and it records the largest approximations.
  // The copy is read once for all outputs. `streams`: the first read in a step, which also copies
  // the rows if copies are wanted (row_copies.hpp).
  void approximate(const isa_form& isa, uint32_t worker, uint64_t outputs, uint32_t top,
                   uint64_t first, uint64_t last, float* y, bool streams = false);
  // True if settle() has work.
  [[nodiscard]] bool settles() const { return bits_ == top_head_bits::six; }
  // Computes the exact logits of those rows of [first, last) that look largest of all.
  void settle(const isa_form& isa, uint32_t workers, uint64_t outputs, uint32_t top, const float* x,
              uint64_t first, uint64_t last, float* y, void* room);
  // Most distance of the full head's logit of `row` from the approximation.
  [[nodiscard]] float bound(uint64_t output, uint64_t row) const {
    return bound(rows_of(w_, bits_), states_[output], row);
  }
  // Replaces the approximations by the exact logit or -infinity; x (outputs, k). Returns the number
  // of exact ones. largest: (outputs) lists that get them, too, after the entries of other workers;
  // or nullptr.
  uint64_t refine(const isa_form& isa, uint32_t workers, uint64_t outputs, uint32_t top,
                  const float* x, uint64_t first, uint64_t last, float* y, void* room,
                  bitnet_largest* largest = nullptr) const;

 private:
  struct state {                // of one output's activations
    double scale = 0;           // s
    float size = 0, error = 0;  // |x|, |e| + (k / 16 + 16) 2^-24 |x|
    float apart = 0;            // 127.5 times the sum left out of |x|; that many d bound r
    float lost = 0;             // error of squares and products where f32 underflows
    bool usual = true;          // neither too large nor too small for f32; else the full head runs
  };
  struct copied_rows {
    const uint8_t* codes;  // (rows, stride)
    uint64_t stride;
    const uint8_t* multipliers;            // with 6 bits: (rows, 16)
    const float *scales, *errors, *sizes;  // (rows): d, |r|, |d q| + |r|
  };
  // A row with its lower bound, or its approximation.
  struct candidate {
    float value;
    uint32_t row;
  };
  static copied_rows rows_of(const sdk::weight& w, top_head_bits bits);
  float bound(const copied_rows& rows, const state& s, uint64_t row) const {
    return certainty_ * (rows.errors[row] * s.size + rows.sizes[row] * s.error +
                         rows.scales[row] * s.apart) +
           s.lost;
  }
  [[nodiscard]] const int16_t* z() const { return reinterpret_cast<const int16_t*>(z_.data()); }
  [[nodiscard]] const int8_t* high() const { return reinterpret_cast<const int8_t*>(high_.data()); }
  [[nodiscard]] const int8_t* low() const { return reinterpret_cast<const int8_t*>(low_.data()); }
  void set_apart(const float* x, double squares, state& s) const;
  void multiply(const isa_form& isa, const copied_rows& rows, uint64_t first, uint64_t n,
                uint64_t outputs, uint64_t tile, int64_t* sums) const;
  [[nodiscard]] candidate* largest(uint32_t worker, uint64_t output) const {
    return largest_.get() + (uint64_t{worker} * max_outputs + output) * max_top;
  }
  // Collects the candidates of all workers.
  void gather(uint32_t workers, uint64_t output, uint32_t top, candidate* all) const;
  // A lower bound of the n-th largest logit.
  [[nodiscard]] float least(uint32_t workers, uint64_t output, uint32_t top, void* room) const;
  // max_top candidates, after the part of a room that linear_dense needs.
  static candidate* candidates_in(void* room) {
    static_assert(dense_room_bytes + max_top * sizeof(candidate) <= room_bytes);
    return reinterpret_cast<candidate*>(static_cast<uint8_t*>(room) + dense_room_bytes);
  }

  const sdk::weight& w_;
  const top_head_bits bits_;
  const float certainty_;  // factor of the Cauchy-Schwarz bound
  // (workers, max_outputs, max_top), the least one first; most pages are never used
  std::unique_ptr<candidate[]> largest_;
  std::unique_ptr<float[]> settled_;  // (max_outputs, max_top): exact logits, with 6 bits
  state states_[max_outputs];
  // int16, and int8 with z = 128 high + low: (max_outputs, padded k). Rows are whole lines of 64
  // bytes, since a load that crosses two lines takes twice as long.
  sdk::memory z_, high_, low_;
  int64_t sums_[max_outputs] = {};                // of z, by output
  int32_t starts_[max_outputs * i6_groups] = {};  // as linear_i6.hpp has them
};

}  // namespace bitnet::cpu
