// The cpu backend's kernels one by one, on one thread, at the shapes of BitNet b1.58 2B-4T.
//
//   build/release/tests/bench/bench_cpu_kernels --benchmark_filter=ternary
//
// Every form of isa_forms that this CPU can run is measured, so a new one appears by itself.
// `read` are bytes of weights, KV or rows per second; `of_stream` is their share of what one thread
// reads in a stream, measured by this program before the first benchmark (the "/s" after it is
// Google Benchmark's for every rate). Rates are per second of CPU time, so that a neighbour that
// takes the core does not count.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "measure/memory_ceiling.hpp"
#include "ops/ops.hpp"
#include "ops/ternary_tiles.hpp"
#include "ops/top_head.hpp"

namespace {

using bitnet::cpu::isa_form;
namespace cpu = bitnet::cpu;
namespace sdk = bitnet::sdk;

// Of the model.
constexpr uint64_t width = 2560, feed_forward = 6912, heads = 20, kv_heads = 5, head_dim = 128,
                   layers = 30;
constexpr uint64_t prefill = 128;   // tokens of a GEMM: enough to be bound by arithmetic
constexpr uint64_t context = 2048;  // tokens that an attention row looks at
// A quarter of the vocabulary: 164 MB in f16, as little in the caches as all of it.
constexpr uint64_t head_rows = 32064;

constexpr struct {
  uint64_t rows, inputs;
} matrices[] = {{feed_forward, width},          // gate, up
                {width, feed_forward},          // down
                {width, width},                 // q, output
                {kv_heads * head_dim, width}};  // k, v

double stream = 0;  // bytes per second that one thread reads

// As the backend asks for the memory of weights and KV.
void in_large_pages(std::vector<uint8_t>& memory) {
  constexpr uint64_t page = uint64_t{2} << 20;
  void* from = memory.data();
  uint64_t room = memory.size();
  if (std::align(page, room / page * page - page, from, room) != nullptr)
    (void)madvise(from, room / page * page, MADV_HUGEPAGE);
  // The vector has touched its pages already, so they are asked for anew.
  (void)madvise(from, room / page * page, MADV_DONTNEED);
}

// Bytes that every kernel reads its weights from, in turn, so that they come from memory. As f16
// they are between 2^-3 and 2 in size; as ternary codes none is 3.
struct pools {
  std::vector<uint8_t> floats, codes;
  pools() : floats(head_rows * width * 2), codes(floats.size()) {
    for (std::vector<uint8_t>* one : {&floats, &codes}) in_large_pages(*one);
    std::mt19937 random(1);
    for (uint64_t i = 0; i < floats.size(); ++i) {
      const uint32_t b = random() >> 24;
      floats[i] = static_cast<uint8_t>((b & 0x8fu) | 0x30u);
      codes[i] = static_cast<uint8_t>(b & ~(b & b >> 1 & 0x55u));
    }
  }
};
const pools& pool() {
  static const pools made;
  return made;
}

// The next `bytes` of a pool.
class reader {
 public:
  reader(const std::vector<uint8_t>& from, uint64_t bytes) : from_(from), bytes_(bytes) {}
  const uint8_t* next() {
    if (at_ + bytes_ > from_.size()) at_ = 0;
    const uint8_t* here = from_.data() + at_;
    at_ += bytes_;
    return here;
  }

 private:
  const std::vector<uint8_t>& from_;
  uint64_t bytes_, at_ = 0;
};

std::vector<float> activations(uint64_t n) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> x(n);
  for (float& v : x) v = between(random);
  return x;
}

void count(benchmark::State& state, uint64_t bytes, uint64_t macs = 0) {
  using benchmark::Counter;
  const auto total = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["read"] = Counter(total, Counter::kIsRate, Counter::kIs1000);
  state.counters["of_stream"] = Counter(total / stream, Counter::kIsRate);
  if (macs != 0)
    state.counters["macs"] = Counter(
        static_cast<double>(macs) * static_cast<double>(state.iterations()), Counter::kIsRate);
}

// What a worker has beside its operands.
void* product_room() {
  static sdk::memory room(cpu::room_bytes);
  return room.data();
}

// With a scale for the matrix, or for each `group` inputs of a row.
void ternary(benchmark::State& state, const isa_form& isa, uint64_t m, uint64_t k, uint64_t n,
             uint64_t group = 0) {
  const std::vector<float> one_scale(1, 1.0f);
  sdk::weight w{BITNET_FORMAT_TERNARY2, k, m, nullptr, k / 4, one_scale.data(), group};
  const uint64_t scale_bytes = group == 0 ? 0 : m * (k / group) * sizeof(float);
  reader scales(pool().floats, scale_bytes);
  std::vector<int8_t> q(n * k);
  std::vector<float> s(n), y(n * m);
  const auto x = activations(n * k);
  for (uint64_t t = 0; t < n; ++t) isa.rows.act_quant(x.data() + t * k, k, q.data() + t * k, &s[t]);
  reader weights(pool().codes, m * k / 4);
  for (auto _ : state) {
    w.data = weights.next();
    if (group != 0) w.scales = reinterpret_cast<const float*>(scales.next());
    cpu::linear_ternary(isa, w, q.data(), s.data(),
                        {.tokens = n, .first = 0, .last = m, .y = y.data()}, product_room());
    benchmark::DoNotOptimize(y.data());
  }
  count(state, m * k / 4 + scale_bytes, m * k * n);
}

// In tiles of 16 rows, a scale for each 128 inputs; q with scales for each `given` of them, or one.
// The shape is that of q and output of Ternary-Bonsai 8B.
constexpr uint64_t tiles_width = 4096, tiles_group = 128;
void tiles(benchmark::State& state, const isa_form& isa, uint64_t n, uint64_t given) {
  constexpr uint64_t m = tiles_width, k = tiles_width;
  const std::vector<float> w_scales(m * (k / tiles_group), 0.01f);
  const sdk::weight rows{BITNET_FORMAT_TERNARY2, k,          m, pool().codes.data(), k / 4,
                         w_scales.data(),        tiles_group};
  const sdk::packing how = cpu::in_tiles();
  const uint64_t bytes = how.bytes(rows);
  static std::vector<uint8_t> memory(pool().codes.size() / bytes * bytes);
  if (memory[bytes - 1] == 0) {
    in_large_pages(memory);
    how.pack(rows, nullptr, 0, m, memory.data());
    for (uint64_t at = bytes; at < memory.size(); at += bytes)
      std::memcpy(memory.data() + at, memory.data(), bytes);
    memory[bytes - 1] |= 1;
  }
  sdk::packed_form form;
  form.how = &how;
  form.bytes = bytes;
  sdk::weight w = rows;
  w.data = nullptr;
  w.packed = &form;
  const auto x = activations(n * k);
  std::vector<int8_t> q(n * k);
  std::vector<float> s(n), d(given == 0 ? 0 : n * (k / given), 0.01f), y(n * m);
  for (uint64_t t = 0; t < n; ++t) isa.rows.act_quant(x.data() + t * k, k, q.data() + t * k, &s[t]);
  reader weights(memory, bytes);
  for (auto _ : state) {
    form.data = weights.next();
    if (given == 0)
      cpu::linear_ternary(isa, w, q.data(), s.data(),
                          {.tokens = n, .first = 0, .last = m, .y = y.data()}, product_room());
    else
      cpu::linear_ternary_grouped(isa, w, q.data(), d.data(), k / given,
                                  {.tokens = n, .first = 0, .last = m, .y = y.data()},
                                  product_room());
    benchmark::DoNotOptimize(y.data());
  }
  count(state, bytes, m * k * n);
}

// The same of a token from a copy with five weights in a byte, which any byte below 243 is.
void ternary_fives(benchmark::State& state, const isa_form& isa, uint64_t m, uint64_t k) {
  const float scale = 1.0f, s = 3.0f;
  const sdk::weight w{BITNET_FORMAT_TERNARY2, k, m, nullptr, k / 4, &scale, 0};
  const std::vector<int8_t> q(k, int8_t{3});
  std::vector<float> y(m);
  const uint64_t bytes = m * cpu::fives_row_bytes(k);
  reader copy(pool().codes, bytes);
  for (auto _ : state) {
    cpu::linear_ternary_fives(isa, w, copy.next(), q.data(), &s,
                              {.tokens = 1, .first = 0, .last = m, .y = y.data()});
    benchmark::DoNotOptimize(y.data());
  }
  count(state, bytes, m * k);
}

// All logits of n output rows.
void dense_f16(benchmark::State& state, const isa_form& isa, uint64_t n) {
  const sdk::weight w{BITNET_FORMAT_F16, width,   head_rows, pool().floats.data(),
                      2 * width,         nullptr, 0};
  const auto x = activations(n * width);
  std::vector<float> y(n * head_rows);
  for (auto _ : state) {
    cpu::linear_dense(isa, w, x.data(), {.tokens = n, .first = 0, .last = head_rows, .y = y.data()},
                      product_room());
    benchmark::DoNotOptimize(y.data());
  }
  count(state, 2 * width * head_rows, width * head_rows * n);
}

// The largest logit of n output rows: both stages.
void head_top(benchmark::State& state, const isa_form& isa, uint64_t n) {
  const cpu::top_head_bits bits = cpu::exact_bits(isa);
  sdk::packed_form form;
  const sdk::weight w{BITNET_FORMAT_F16, width,   head_rows, pool().floats.data(),
                      2 * width,         nullptr, 0,         &form};
  form.own = sdk::memory(cpu::top_head::packed_bytes(w, bits));
  cpu::top_head::pack(w, bits, isa, 0, head_rows, form.own.data());
  form.data = form.own.data();
  cpu::top_head two(w, bits, 1);
  const auto x = activations(n * width);
  std::vector<float> y(n * head_rows);
  uint64_t exact = 0;
  for (auto _ : state) {
    for (uint64_t o = 0; o < n; ++o) two.take(o, x.data() + o * width);
    two.approximate(isa, 0, n, 1, 0, head_rows, y.data());
    two.settle(isa, 1, n, 1, x.data(), 0, head_rows, y.data(), product_room());
    exact = two.refine(isa, 1, n, 1, x.data(), 0, head_rows, y.data(), product_room());
    benchmark::DoNotOptimize(y.data());
  }
  count(state, cpu::top_head::packed_bytes(w, bits), width * head_rows * n);
  state.counters["exact"] = static_cast<double>(exact) / static_cast<double>(n * head_rows);
}

// Activations of the head's first pass, all 1000, in whole lines as the head has them.
struct parts {
  explicit parts(uint64_t n) : x_of(2 * n * width), high_of(n * width), low_of(n * width) {
    std::fill_n(reinterpret_cast<int16_t*>(x_of.data()), n * width, int16_t{1000});
    std::memset(high_of.data(), 8, n * width);
    std::memset(low_of.data(), -24, n * width);  // 1000 = 128 * 8 - 24
  }
  const int16_t* x(uint64_t o) const {
    return reinterpret_cast<const int16_t*>(x_of.data()) + o * width;
  }
  const int8_t* high(uint64_t o) const {
    return reinterpret_cast<const int8_t*>(high_of.data()) + o * width;
  }
  const int8_t* low(uint64_t o) const {
    return reinterpret_cast<const int8_t*>(low_of.data()) + o * width;
  }
  sdk::memory x_of, high_of, low_of;
};

// In tiles of 48 rows, as the head takes them; `together`: all n of them at once.
void linear_i8(benchmark::State& state, const isa_form& isa, uint64_t n, bool together) {
  constexpr uint64_t tile = 48;
  const parts of(n);
  const std::vector<int64_t> x_sums(n, 1000 * int64_t{width});
  std::vector<int64_t> sums(n * tile);
  reader weights(pool().floats, width * head_rows);
  for (auto _ : state) {
    const uint8_t* codes = weights.next();
    for (uint64_t r = 0; r < head_rows; r += tile)
      for (uint64_t o = 0; o < n; o += together ? n : 1)
        isa.linear_i8({codes + r * width, width, of.x(o), of.high(o), of.low(o), width,
                       x_sums.data() + o, sums.data() + o * tile, tile, width, tile,
                       together ? n : 1});
    benchmark::DoNotOptimize(sums.data());
  }
  count(state, width * head_rows, width * head_rows * n);
}

// The same of 6 bits, all n together.
void linear_i6(benchmark::State& state, const isa_form& isa, uint64_t n) {
  constexpr uint64_t tile = 48, row = width / cpu::i6_block * cpu::i6_block_bytes;
  const parts of(n);
  const std::vector<int32_t> starts(n * cpu::i6_groups,
                                    -32 * 1000 * static_cast<int32_t>(width / cpu::i6_groups));
  const std::vector<uint8_t> multipliers(head_rows * cpu::i6_groups, 200);
  std::vector<int64_t> sums(n * tile);
  reader weights(pool().floats, row * head_rows);
  for (auto _ : state) {
    const uint8_t* codes = weights.next();
    for (uint64_t r = 0; r < head_rows; r += tile)
      isa.linear_i6({codes + r * row, multipliers.data() + r * cpu::i6_groups, of.high(0),
                     of.low(0), width, starts.data(), sums.data(), tile, width, tile, n});
    benchmark::DoNotOptimize(sums.data());
  }
  count(state, (row + cpu::i6_groups) * head_rows, width * head_rows * n);
}

// All heads of one token, as in generating; every iteration is the next layer.
void attention_row(benchmark::State& state, const isa_form& isa, uint32_t dtype) {
  constexpr uint64_t block_tokens = 64, blocks = context / block_tokens;
  const int32_t position = context - 1, sequence = 0;
  std::vector<int32_t> table(blocks);
  for (uint64_t b = 0; b < blocks; ++b) table[b] = static_cast<int32_t>(b);
  const auto q = activations(width);
  std::vector<float> y(width), scores(heads / kv_heads * context);
  sdk::step_view step;
  step.n_tokens = 1;
  step.max_blocks = blocks;
  step.block_tokens = block_tokens;
  step.positions = &position;
  step.sequences = &sequence;
  step.block_tables = table.data();
  sdk::kv_storage& kv = step.kv;
  kv.data = const_cast<uint8_t*>(pool().floats.data());  // only read
  kv.dtype_k = kv.dtype_v = dtype;
  kv.n_layers = layers;
  kv.n_blocks = blocks;
  kv.block_tokens = block_tokens;
  kv.n_kv_heads = kv_heads;
  kv.head_dim = head_dim;
  kv.k_bytes = kv.v_bytes = sdk::kv_head_bytes(dtype, head_dim);
  kv.layer_bytes = block_tokens * kv_heads * (kv.k_bytes + kv.v_bytes);
  kv.block_bytes = layers * kv.layer_bytes;
  if (kv.block_bytes * blocks > pool().floats.size()) {
    state.SkipWithError("the pool is smaller than the KV");
    return;
  }
  sdk::call c{};
  c.op = BITNET_OP_ATTN_PAGED;
  c.rows = 1;
  c.k = c.m = width;
  c.in[0] = q.data();
  c.out[0] = y.data();
  c.ints[1] = heads;
  c.ints[2] = kv_heads;
  c.ints[3] = head_dim;
  c.floats[0] = 0.088f;  // 1 / sqrt(128)
  c.step = &step;
  c.author_data = &isa;
  for (auto _ : state) {
    cpu::attention(isa, c, 0, heads, scores.data());
    benchmark::DoNotOptimize(y.data());
    c.ints[0] = static_cast<int32_t>((static_cast<uint64_t>(c.ints[0]) + 1) % layers);
  }
  count(state, kv.layer_bytes * blocks, 2 * context * width);
}

// Rows stay in the first cache, as between the matrices of a model.
void rows(const isa_form& isa) {
  static const auto a = activations(feed_forward), b = activations(feed_forward);
  static std::vector<float> y(feed_forward), out(2);
  static std::vector<int8_t> q(feed_forward);
  static std::vector<uint8_t> halves(2 * feed_forward);
  static const auto cosines = activations(head_dim / 2);
  constexpr uint64_t k = feed_forward;
  const cpu::row_kernels& r = isa.rows;
  const struct {
    const char* name;
    uint64_t bytes;  // that it reads
    std::function<void()> run;
  } all[] = {
      {"rms_norm", 8 * k, [&r] { r.rms_norm(a.data(), b.data(), 1e-5f, k, y.data()); }},
      {"act_quant", 4 * k, [&r] { r.act_quant(a.data(), k, q.data(), out.data()); }},
      {"add", 8 * k, [&r] { r.add(a.data(), b.data(), k, y.data()); }},
      {"mul", 8 * k, [&r] { r.mul(a.data(), b.data(), k, y.data()); }},
      {"relu2", 4 * k, [&r] { r.relu2(a.data(), k, y.data()); }},
      {"silu", 4 * k, [&r] { r.silu(a.data(), k, y.data()); }},
      {"gelu", 4 * k, [&r] { r.gelu(a.data(), k, y.data()); }},
      {"scale", 4 * k, [&r] { r.scale(a.data(), 50.6f, k, y.data()); }},
      {"softmax", 4 * context,
       [&r] {
         std::copy_n(a.begin(), context, y.begin());
         benchmark::DoNotOptimize(r.softmax(y.data(), context, 0.088f));
       }},
      {"rotate", 4 * width,
       [&r] {
         r.rotate(a.data(), {cosines.data(), cosines.data(), head_dim / 2, heads, head_dim, true},
                  y.data());
       }},
      {"halves", 4 * k, [&r] { r.halves(a.data(), k, halves.data()); }},
      {"widen", 2 * k, [&r] { r.widen(halves.data(), k, y.data()); }},
      {"quant_error", 5 * k,
       [&r] { r.quant_error(a.data(), q.data(), 0.01f, k, out.data(), out.data() + 1); }},
  };
  for (const auto& one : all)
    benchmark::RegisterBenchmark((std::string("row/") + one.name + "/" + isa.name).c_str(),
                                 [run = one.run, bytes = one.bytes](benchmark::State& state) {
                                   for (auto _ : state) {
                                     run();
                                     benchmark::ClobberMemory();
                                   }
                                   count(state, bytes);
                                 });
}

void add(const isa_form& isa) {
  const auto name = [&](const std::string& kernel) { return kernel + "/" + isa.name; };
  for (const auto& matrix : matrices) {
    const std::string shape = std::to_string(matrix.rows) + "x" + std::to_string(matrix.inputs);
    for (const uint64_t n : {uint64_t{1}, prefill})
      benchmark::RegisterBenchmark(
          name((n == 1 ? "ternary_gemv/" : "ternary_gemm/") + shape).c_str(),
          [&isa, &matrix, n](benchmark::State& s) {
            ternary(s, isa, matrix.rows, matrix.inputs, n);
          });
    if (cpu::has_fives(isa))
      benchmark::RegisterBenchmark(name("ternary_fives_gemv/" + shape).c_str(),
                                   [&isa, &matrix](benchmark::State& s) {
                                     ternary_fives(s, isa, matrix.rows, matrix.inputs);
                                   });
  }
  for (const uint64_t group : {uint64_t{32}, uint64_t{64}, uint64_t{128}})
    for (const uint64_t n : {uint64_t{1}, prefill})
      benchmark::RegisterBenchmark(
          name((n == 1 ? "ternary_grouped_gemv/6912x2560/" : "ternary_grouped_gemm/6912x2560/") +
               std::to_string(group))
              .c_str(),
          [&isa, group, n](benchmark::State& s) {
            ternary(s, isa, feed_forward, width, n, group);
          });
  for (const uint64_t given : {0u, 32u, 128u})
    for (const uint64_t n : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 16u, 24u, 32u})
      benchmark::RegisterBenchmark(
          name("tiles/4096x4096/" + std::to_string(given) + '/' + std::to_string(n)).c_str(),
          [&isa, n, given](benchmark::State& s) { tiles(s, isa, n, given); });
  for (const uint64_t n : {1u, 4u, 8u, 16u, 32u}) {
    const std::string outputs = "32064x2560/" + std::to_string(n);
    benchmark::RegisterBenchmark(name("dense_f16/" + outputs).c_str(),
                                 [&isa, n](benchmark::State& s) { dense_f16(s, isa, n); });
    benchmark::RegisterBenchmark(name("head_top/" + outputs).c_str(),
                                 [&isa, n](benchmark::State& s) { head_top(s, isa, n); });
    benchmark::RegisterBenchmark(name("linear_i8/" + outputs).c_str(),
                                 [&isa, n](benchmark::State& s) { linear_i8(s, isa, n, true); });
    if (isa.linear_i6.run != nullptr)
      benchmark::RegisterBenchmark(name("linear_i6/" + outputs).c_str(),
                                   [&isa, n](benchmark::State& s) { linear_i6(s, isa, n); });
    benchmark::RegisterBenchmark(name("linear_i8_in_turn/" + outputs).c_str(),
                                 [&isa, n](benchmark::State& s) { linear_i8(s, isa, n, false); });
  }
  const struct {
    const char* name;
    uint32_t dtype;
  } kv_types[] = {
      {"", BITNET_DTYPE_F16}, {"/q8_0", BITNET_DTYPE_Q8_0}, {"/q4_0", BITNET_DTYPE_Q4_0}};
  for (const auto& type : kv_types)
    benchmark::RegisterBenchmark(
        name(std::string("attention_row/2048") + type.name).c_str(),
        [&isa, dtype = type.dtype](benchmark::State& s) { attention_row(s, isa, dtype); });
  rows(isa);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  stream = bitnet::host::memory_ceiling(512'000'000).measure(1) * 1e9;
  benchmark::AddCustomContext("stream_read_gbps", std::to_string(stream / 1e9));
  for (const isa_form& isa : cpu::isa_forms)
    if (isa.supported() && (!isa.ask || isa.ask())) add(isa);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
