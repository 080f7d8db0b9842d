// linear_ternary for prompts on sm_90, bit for bit: matrices with one scale.
//
// One warp lets the copy engine load activations and codes, some stages ahead. Eight warps, in
// two warp groups, each make fragments of codes in registers and multiply them by activations that
// the tensor cores read from memory of the group themselves. Fragments of the next batch are made
// while one is multiplied.

#include "quotient.cuh"
#include "warp_groups.cuh"

using namespace bitnet::kernels;

namespace {

// Values of a token that all rows need after their products.
struct alignas(16) token_facts {
  int sum_of_activations;
  divisor scale;
  bool usual;  // divisor::usual() of the scale
};

// The shared memory of a group.
template <class Shape>
struct group_memory {
  uint8_t* stage_bytes;
  phase_barrier *filled, *emptied, *counted;  // of each stage; of a tile
  token_facts* facts;                         // of each token, for two tiles in turn
  uint32_t most_looks;                        // launch::most_looks

  __device__ explicit group_memory(const launch& l) : most_looks(l.most_looks) {
    auto* memory = static_cast<uint8_t*>(shared_memory());
    stage_bytes = memory + (of_alignment - shared_address(memory) % of_alignment) % of_alignment;
    filled = reinterpret_cast<phase_barrier*>(stage_bytes + stages * Shape::stage);
    emptied = filled + stages;
    counted = emptied + stages;
    facts = reinterpret_cast<token_facts*>(counted + 2);  // aligned to 16 bytes
  }
  static constexpr uint32_t bytes = of_alignment + stages * Shape::stage +
                                    (2 * stages + 2) * sizeof(phase_barrier) +
                                    2 * Shape::tokens * sizeof(token_facts);
  __device__ uint8_t* stage(uint32_t turn) const {
    return stage_bytes + turn % stages * Shape::stage;
  }
  __device__ bool wait(phase_barrier* b, uint32_t parity) const {
    return wait_for_phase(b, parity, most_looks);
  }
  __device__ void begin() const {
    if (threadIdx.x == 0) {
      for (uint32_t i = 0; i < stages; ++i) {
        begin_barrier(filled + i, 1);
        begin_barrier(emptied + i, consumers);
      }
      begin_barrier(counted, consumers);
      show_barriers();
    }
    __syncthreads();
  }
};
// One thread. `turn` counts stages from the first of this group's first tile on.
template <class Shape>
__device__ void produce(const launch& l, const group_memory<Shape>& m, uint32_t r, uint64_t first,
                        uint32_t n, uint32_t turn) {
  for (uint32_t i = 0; i < n; ++i, ++turn) {
    const uint32_t at = turn % stages;
    if (turn >= stages && !m.wait(m.emptied + at, parity_of(turn - stages))) return;
    copy_stage<Shape>(l, m.stage(turn), i, r, first, m.filled + at);
  }
}

template <class Shape>
using group_sums = int[Shape::tiles][Shape::sums];

// Codes of two quarters of a block, as the tensor cores take them.
template <class Shape>
struct fragments {
  uint32_t of[2][Shape::tiles][4];

  __device__ void make(const stage_codes<Shape>& codes, uint32_t half) {
    for (uint32_t i = 0; i < 2; ++i)
      for (uint32_t t = 0; t < Shape::tiles; ++t)
        codes_at(6 - 2 * (2 * half + i), codes.of[t], of[i][t]);
  }
  __device__ void keep() {
    for (auto& quarter : of)
      for (auto& fragment : quarter) keep_before(fragment);
  }
};

// Multiplies fragments by activations of two quarters, which begin at `at`, and calls next()
// meanwhile, for example to make the next fragments. Only one batch runs at a time: with several,
// the compiler would wait for all of them before it writes registers that a later one reads.
template <class Shape, class Next>
__device__ void multiply(fragments<Shape>& a, const uint8_t* at, group_sums<Shape>& sums,
                         Next next) {
  a.keep();
  begin_batch();
  for (uint32_t i = 0; i < 2; ++i)
    for (uint32_t t = 0; t < Shape::tiles; ++t)
      multiply_warp_group<Shape::tokens>(sums[t], a.of[i][t], columns_at(at + i * 32));
  end_batch();
  next();
  wait_for_batches<0>();
}

// This thread's share of the sum of a token's activations in a stage. The copy engine has rotated
// the eight pieces of a row by the row's number; threads begin at different pieces.
template <class Shape>
__device__ int count_share(const uint8_t* stage) {
  constexpr uint32_t shares = consumers * warp / Shape::tokens, each = 16 / shares;
  const uint32_t token = threadIdx.x / shares, share = threadIdx.x % shares;
  int sum = 0;
  for (uint32_t i = 0; i < each; ++i) {
    const uint32_t piece = share * each + (i + share / (8 / each) * (each / 2)) % each;
    const uint32_t at = piece / 8 * Shape::box + token * 128 + (piece % 8 ^ token % 8) * 16;
    const uint4 words = *reinterpret_cast<const uint4*>(stage + at);
    const uint32_t four[4] = {words.x, words.y, words.z, words.w};
    for (const uint32_t word : four)
      sum = dot4(static_cast<int>(word), static_cast<int>(ones), sum);
  }
  return sum;
}

// Multiplies a whole row. Returns this thread's share of the activations. If copies do not arrive,
// it stops at those that did.
template <class Shape>
__device__ int consume(const group_memory<Shape>& m, uint32_t n, uint32_t turn,
                       group_sums<Shape>& sums) {
  int counted = 0;
  stage_codes<Shape> codes;
  fragments<Shape> even, odd;
  const uint32_t place = codes.place();
  const auto read = [&](uint32_t block) { codes.read(m.stage(turn) + Shape::codes, place, block); };
  bool filled = m.wait(m.filled + turn % stages, parity_of(turn));
  if (!filled) return 0;
  read(0);
  even.make(codes, 0);
  for (uint32_t i = 0; i < n && filled; ++i) {
    const uint8_t* stage = m.stage(turn);
    phase_barrier* emptied = m.emptied + turn % stages;
    multiply<Shape>(even, stage, sums, [&] { odd.make(codes, 1); });
    multiply<Shape>(odd, stage + 64, sums, [&] {
      read(1);
      even.make(codes, 0);
    });
    multiply<Shape>(even, stage + Shape::box, sums, [&] { odd.make(codes, 1); });
    ++turn;
    multiply<Shape>(odd, stage + Shape::box + 64, sums, [&] {
      counted += count_share<Shape>(stage);
      if (i + 1 == n) return;
      filled = m.wait(m.filled + turn % stages, parity_of(turn));
      if (!filled) return;
      read(0);
      even.make(codes, 0);
    });
    arrive_together(emptied);
  }
  for (uint32_t t = 0; t < Shape::tiles; ++t) keep_behind(sums[t]);
  return counted;
}

// Returns the facts of the tile's tokens, after all threads have added their shares.
template <class Shape>
__device__ const token_facts* share_facts(const ternary_product& product,
                                          const group_memory<Shape>& m, uint64_t first,
                                          uint32_t tile, int counted) {
  constexpr uint32_t shares = consumers * warp / Shape::tokens;
  token_facts* out = m.facts + tile % 2 * Shape::tokens;
  for (uint32_t d = shares / 2; d != 0; d /= 2) counted += shuffle_xor(counted, d);
  if (threadIdx.x % shares == 0) {
    const uint32_t token = threadIdx.x / shares;
    const divisor scale = divisor_of(product.s[product.token(first + token)]);
    out[token] = {counted, scale, scale.usual()};
  }
  arrive_together(m.counted);
  m.wait(m.counted, tile % 2);
  return out;
}

// The bits of ternary_product::put_sum(), by one division for each token.
template <class Shape>
__device__ void put_sums(const ternary_product& product, const token_facts* facts, uint32_t r,
                         uint64_t first, const group_sums<Shape>& sums) {
  const float matrix_scale = product.scales[0];
  r += warp_of_group() / 4 * Shape::rows_of_group + warp_of_group() % 4 * 16;
  BITNET_UNROLL
  for (uint32_t i = 0; i < Shape::sums / 2; ++i) {  // two of the tile's rows each
    const uint32_t token = i / 2 * 8 + token_of(i % 2);
    const token_facts about = facts[token];
    const auto put_all = [&](auto quotient) {
      BITNET_UNROLL
      for (uint32_t t = 0; t < Shape::tiles; ++t) {
        BITNET_UNROLL
        for (uint32_t e = i % 2; e < 4; e += 2) {
          const int sum = sums[t][i / 2 * 4 + e] - about.sum_of_activations;
          product.put(first + token, r + 64 * t + row_of(e),
                      quotient(static_cast<float>(sum)) * matrix_scale);
        }
      }
    };
    if (about.usual)
      put_all([&](float n) { return about.scale.quotient(n); });
    else
      put_all([&](float n) { return n / about.scale.by; });
  }
}

// `Registers`: of a thread that multiplies; 0: as many as others.
template <class Shape, uint32_t Registers>
__device__ void multiply_by_warp_groups(const launch& l) {
  const ternary_product product = ternary_product_of(l);
  const group_memory<Shape> m(l);
  const uint32_t n = stages_of_row(product);
  m.begin();
  // The same for all lanes, as the compiler can see.
  const uint32_t mine = shuffle(warp_of_group(), 0);
  if (mine >= consumers) {
    if constexpr (Registers != 0) give_registers_back<40>();
    if (mine == consumers && lane() == 0)
      each_tile<Shape>(product, [&](uint32_t r, uint64_t first, uint32_t tile) {
        produce<Shape>(l, m, r, first, n, tile * n);
      });
    return;
  }
  if constexpr (Registers != 0) take_registers<Registers>();
  each_tile<Shape>(product, [&](uint32_t r, uint64_t first, uint32_t tile) {
    int sums[Shape::tiles][Shape::sums] = {};
    const int counted = consume<Shape>(m, n, tile * n, sums);
    put_sums<Shape>(product, share_facts(product, m, first, tile, counted), r, first, sums);
  });
}

using narrow = warp_group_shape<1, 64>;
using wide = warp_group_shape<2, 128>;
static_assert(narrow_form.rows == narrow::rows && wide_form.rows == wide::rows);
static_assert(narrow_form.shared_bytes == group_memory<narrow>::bytes &&
              wide_form.shared_bytes == group_memory<wide>::bytes);

}  // namespace

BITNET_KERNEL_BY(linear_ternary_narrow, narrow_form.threads, 2) {
  multiply_by_warp_groups<narrow, 0>(l);
}
BITNET_KERNEL_BY(linear_ternary_wide, wide_form.threads, 1) {
  multiply_by_warp_groups<wide, 232>(l);
}
