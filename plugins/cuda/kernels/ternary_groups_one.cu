// linear_ternary with factors of scale groups for one token at a time, bit for bit. The shorter
// groups have 32, 64, 128, 256, 512 or 1024 elements.
//
// A work group takes 16 rows of the matrix. Its four warps take turns with blocks of 128 elements,
// each eight adjacent blocks. A lane takes one block of four rows, so that it reads a block of the
// token once for four products. The token's blocks lie in shared memory of the warp, padded so that
// eight lanes read from different banks. Lanes store results in shared memory, and one thread for
// each row adds them up in ascending order.

#include "gpu-common/simt/group.cuh"
#include "gpu-common/simt/ternary.cuh"
#include "tiles.hpp"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

constexpr uint32_t rows_each = 4;                           // that a lane takes
constexpr uint32_t of_warp = 8, of_turn = warps * of_warp;  // blocks
constexpr tile_form form = one_factored;
static_assert(form.rows == rows_each * (warp / of_warp) && form.tokens == 1);

// A block of the token.
struct block_of_token {
  uint4 q[8];
  // Added to the products of each quarter: minus the sum of its activations, times the power of two
  // of the codes' place in their bytes.
  uint4 corrections;
};
// The token's blocks that a warp keeps for this turn.
struct warp_memory {
  block_of_token blocks[of_warp];
  uint4 factors[of_warp];  // f32 of the token, for each quarter
};
// Results of the lanes in two turns: values of a row in ascending order, up to four for each block.
// Rows are padded by four words, so that eight threads read from different banks.
constexpr uint32_t values_of_row = 4 * of_turn + 4;
struct group_memory {
  warp_memory of[warps];
  float values[2][form.rows][values_of_row];
};
static_assert(form.shared_bytes == sizeof(group_memory));

// Where the codes of its rows begin, by 16 bytes of the matrix, and their factors.
struct lane_rows {
  uint32_t codes[rows_each], factors[rows_each];
};
// A lane's block of a row, with factors of the matrix where a value or a product ends that is
// multiplied by one. Those of a turn stay where they are until the next turn's are read.
template <uint32_t quarters>
struct lane_block {
  uint4 codes[2];
  float factors[4 / quarters];
};
// The part of the token that a lane loads: a quarter of a block, and its factor.
struct quarter_of_token {
  uint4 q[2];
  float factor;
};

// The values that are added up for a row: sums of longer groups if these end within a block,
// otherwise the products of shorter ones.
struct value_form {
  bool nested;     // values are of longer groups
  bool left_open;  // longer groups are made of values
  uint32_t shift;  // a value is of so many elements: 1 << shift
  uint32_t mask;   // and ends, in its block, where none of these bits is set

  __device__ explicit value_form(const factor_groups& f)
      : nested(f.longer == 32 || f.longer == 64 || f.longer == 128),
        left_open(f.longer != 0 && !nested),
        shift(log2_of(nested ? f.longer : f.shorter)),
        mask(smaller(1u << shift, 128) - 1) {}
};

// A thread's sums of its row, while the warps proceed along the row.
struct adding {
  float inner, outer;
  uint32_t left;           // elements of the longer group
  const float* of_longer;  // the factor of that
};

__device__ group_memory& memory_of_group() {
  return *static_cast<group_memory*>(shared_memory());
}
// The block that a lane multiplies in the turn that begins with block `at`.
__device__ uint32_t block_of_lane(uint32_t at) {
  return at + warp_of_group() * of_warp + lane() % of_warp;
}
__device__ uint32_t word_of(const uint4& words, uint32_t i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

__device__ void load_four(const float* from, float (&out)[4]) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  for (uint32_t i = 0; i < 4; ++i) out[i] = bits_of<float>(word_of(words, i));
}

template <class T>
__device__ void put_word(uint4& words, uint32_t i, T value) {
  static_assert(sizeof value == 4);
  memcpy(reinterpret_cast<char*>(&words) + 4 * i, &value, 4);
}

class one_token {
 public:
  __device__ one_token(const ternary_product& product, uint32_t given)
      : of_(product),
        f_(factor_groups_of(product, given)),
        given_(given),
        values_(f_),
        blocks_(product.p.row_words / 8),
        given_shift_(given == 0 ? 0 : log2_of(given)),
        own_shift_(log2_of(f_.rows_first ? f_.shorter : f_.longer)),
        own_mask_(smaller(1u << own_shift_, 128) - 1) {}

  __device__ uint32_t shorter() const { return f_.shorter; }

  // Rows [r, r + form.rows) of token t, in groups of so many quarters of a block, or of blocks.
  // `turn` continues from call to call.
  template <uint32_t quarters>
  __device__ void compute(uint32_t r, uint64_t t, uint32_t& turn) const {
    lane_rows rows;
    BITNET_UNROLL
    for (uint32_t i = 0; i < rows_each; ++i) {
      const uint32_t row = smaller(r + lane() / of_warp * rows_each + i, of_.p.n_rows - 1);
      rows.codes[i] = row * (of_.p.row_words / 4);
      rows.factors[i] = (of_.p.first_row + row) * f_.of_row;
    }
    const auto* q = reinterpret_cast<const uint4*>(of_.activations_of(t));
    const float* of_token = f_.token(of_, t);
    adding sum = {0, 0, f_.longer, f_.row(of_, r + smaller(lane(), form.rows - 1))};
    lane_block<quarters> blocks[rows_each] = {};
    BITNET_UNROLL
    for (uint32_t i = 0; i < rows_each; ++i) read_block(rows, i, block_of_lane(0), blocks[i]);
    quarter_of_token next = {};
    read_quarter(q, of_token, 0, next);
    BITNET_NO_UNROLL
    for (uint32_t at = 0; at < blocks_; at += of_turn, turn ^= 1) {
      warp_memory& mine = memory_of_group().of[warp_of_group()];
      keep(next, mine);
      read_quarter(q, of_token, at + of_turn, next);
      if (at + warp_of_group() * of_warp < blocks_)  // all of a warp
        multiply<quarters>(rows, at, mine, blocks, memory_of_group().values[turn]);
      __syncthreads();  // also: all have read the values of two turns ago
      if (adds()) add(memory_of_group().values[turn][lane()], at, sum);
    }
    if (!adds()) return;
    const float value = values_.left_open ? sum.outer : sum.inner;
    of_.put(t, r + lane(), given_ == 0 ? value / of_.s[of_.token(t)] : value);
  }

 private:
  // True if the thread adds up the values of a row.
  __device__ static bool adds() { return warp_of_group() == warps - 1 && lane() < form.rows; }

  template <uint32_t quarters>
  __device__ void read_block(const lane_rows& rows, uint32_t i, uint32_t block,
                             lane_block<quarters>& out) const {
    if (block >= blocks_) return;
    const auto* row = reinterpret_cast<const uint4*>(of_.matrix) + rows.codes[i];
    out.codes[0] = row[2 * block];
    out.codes[1] = row[2 * block + 1];
    if (!f_.rows_first && !values_.nested) return;
    BITNET_UNROLL
    for (uint32_t group = 0; group < 4 / quarters; ++group) {
      const uint32_t end = (group + 1) * quarters * 32, last = 128 * block + end - 32;
      if ((end & own_mask_) != 0 || last >= of_.p.k) continue;
      out.factors[group] = of_.scales[rows.factors[i] + (last >> own_shift_)];
    }
  }

  // Four lanes load a block, which is not the one that they multiply.
  __device__ void read_quarter(const uint4* q, const float* of_token, uint32_t at,
                               quarter_of_token& out) const {
    const uint32_t block = at + warp_of_group() * of_warp + lane() / 4, quarter = lane() % 4;
    if (block >= blocks_) return;
    out.q[0] = q[8 * block + 2 * quarter];
    out.q[1] = q[8 * block + 2 * quarter + 1];
    const uint32_t element = 128 * block + 32 * quarter;
    if (given_ != 0 && element < of_.p.k) out.factor = of_token[element >> given_shift_];
  }
  // Stores a quarter after all lanes of the warp have used the previous turn, and makes it visible
  // to them.
  __device__ static void keep(const quarter_of_token& one, warp_memory& mine) {
    const uint32_t block = lane() / 4, quarter = lane() % 4;
    const int sum_of_activations = sum16(one.q[1], sum16(one.q[0], 0));
    meet_lanes();
    mine.blocks[block].q[2 * quarter] = one.q[0];
    mine.blocks[block].q[2 * quarter + 1] = one.q[1];
    put_word(mine.blocks[block].corrections, quarter, -sum_of_activations * (64 >> (2 * quarter)));
    put_word(mine.factors[block], quarter, one.factor);
    meet_lanes();
  }

  // Multiplies the lane's block of its rows and stores the results. After each row it reads the
  // row's block of the next turn.
  template <uint32_t quarters>
  __device__ void multiply(const lane_rows& rows, uint32_t at, const warp_memory& mine,
                           lane_block<quarters> (&blocks)[rows_each],
                           float (&values)[form.rows][values_of_row]) const {
    const block_of_token token = mine.blocks[lane() % of_warp];
    const uint4 of_token = mine.factors[lane() % of_warp];
    BITNET_UNROLL
    for (uint32_t i = 0; i < rows_each; ++i) {
      multiply_row<quarters>(blocks[i], token, of_token, values[lane() / of_warp * rows_each + i]);
      read_block(rows, i, block_of_lane(at + of_turn), blocks[i]);
    }
  }
  template <uint32_t quarters>
  __device__ void multiply_row(const lane_block<quarters>& block, const block_of_token& token,
                               const uint4& of_token, float (&values)[values_of_row]) const {
    const uint32_t first = 128 * block_of_lane(0);  // element of the turn
    // If several blocks have one value together, the lane of the first block stores it.
    const bool begins = (first & ((1u << values_.shift) - 1)) == 0;
    float inner = 0;
    int sum = 0;
    BITNET_UNROLL
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      const uint32_t shift = 6 - 2 * quarter, mask = codes_mask << shift;
      const int correction = static_cast<int>(word_of(token.corrections, quarter));
      const int half = dot16_in_place(block.codes[0], mask, token.q[2 * quarter], correction);
      sum += dot16_in_place(block.codes[1], mask, token.q[2 * quarter + 1], half) >> shift;
      if ((quarter + 1) % quarters != 0) continue;
      if (quarters == 4) sum = joined(sum);
      const uint32_t group = quarter / quarters;
      const float token_factor = bits_of<float>(word_of(of_token, quarter));
      const float x =
          static_cast<float>(sum) * (f_.rows_first ? block.factors[group] : token_factor);
      inner = group == 0 ? x : inner + x;  // from -0, which no sum behind it shows
      sum = 0;
      if ((32 * (quarter + 1) & values_.mask) != 0) continue;
      const float factor = f_.rows_first ? token_factor : block.factors[group];
      if (begins)
        values[(first + 32 * quarter) >> values_.shift] = values_.nested ? inner * factor : inner;
      inner = 0;
    }
  }
  // The sum of a group that is longer than a block.
  __device__ int joined(int sum) const {
    for (uint32_t d = 1; d < f_.shorter / 128; d *= 2) sum += shuffle_xor(sum, d);
    return sum;
  }

  // Adds the values of a row in a turn.
  __device__ void add(const float (&values)[values_of_row], uint32_t at, adding& sum) const {
    const uint32_t shift = values_.shift;
    const uint32_t n = smaller(128 * of_turn >> shift, (of_.p.k >> shift) - (128 * at >> shift));
    if (values_.left_open) {
      BITNET_NO_UNROLL
      for (uint32_t i = 0; i < n; ++i) add_open(values[i], sum);
      return;
    }
    uint32_t i = 0;
    BITNET_NO_UNROLL
    for (; i + 4 <= n; i += 4) {
      float four[4];
      load_four(values + i, four);
      for (uint32_t j = 0; j < 4; ++j) sum.inner += four[j];
    }
    BITNET_NO_UNROLL
    for (; i < n; ++i) sum.inner += values[i];
  }
  __device__ void add_open(float value, adding& sum) const {
    sum.inner += value;
    sum.left -= 1u << values_.shift;
    if (sum.left != 0) return;
    sum.outer += sum.inner * *sum.of_longer++;
    sum.inner = 0;
    sum.left = f_.longer;
  }

  const ternary_product& of_;
  const factor_groups f_;
  const uint32_t given_;
  const value_form values_;
  const uint32_t blocks_;
  const uint32_t given_shift_;           // log2 of elements to a factor of the token
  const uint32_t own_shift_, own_mask_;  // of the matrix, where factors of it are multiplied here
};

// Also the factors of the rows, up to the last 16 aligned bytes of them.
__device__ void fetch_ahead_of_one(const launch& l, const group_of_launch& group) {
  fetch_rows_ahead<gpu::linear_ternary_params>(l, group, form.rows);
  const auto p = params_of<gpu::linear_ternary_params>(l);
  const uint64_t first = uint64_t{group.number} * form.rows;
  if (p.scale_group == 0 || threadIdx.x != 0 || blockIdx.y != 0 || first >= p.n_rows) return;
  const uint32_t of_row = p.k / p.scale_group;
  const uint64_t rows = smaller(form.rows, p.n_rows - static_cast<uint32_t>(first));
  const uint64_t begin = 4 * (p.first_row + first) * of_row / 16 * 16;
  const uint64_t end = 4 * (p.first_row + first + rows) * of_row / 16 * 16;
  if (begin != end)
    fetch_ahead(memory_of<const char>(l, 4) + begin, static_cast<uint32_t>(end - begin));
}

}  // namespace

BITNET_KERNEL_JOINED(linear_ternary_factored_one, 3, fetch_ahead_of_one) {
  const ternary_product product = ternary_product_of(l);
  const one_token one(product, l.constants[4]);
  uint32_t turn = 0;
  each_group(group, (uint64_t{product.p.n_rows} + form.rows - 1) / form.rows, [&](uint32_t unit) {
    each_y(product.tokens, [&](uint32_t t) {
      if (one.shorter() == 32)
        one.compute<1>(unit * form.rows, t, turn);
      else if (one.shorter() == 64)
        one.compute<2>(unit * form.rows, t, turn);
      else
        one.compute<4>(unit * form.rows, t, turn);
    });
  });
}
