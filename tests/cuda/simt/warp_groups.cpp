#include "warp_groups.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "simt.hpp"
#include "warp_groups_state.hpp"

namespace simt {

bool wrong_products = false;

namespace {

struct phases {
  uint32_t arrivals, arrived = 0, parity = 0;
  int64_t bytes = 0;  // expected and not copied yet

  void end_if_complete() {
    if (arrived != arrivals || bytes != 0) return;
    parity ^= 1;
    arrived = 0;
  }
};
struct copy {
  void* to;
  boxes of;
  uint32_t x, y;
  uint64_t* barrier;
};

constexpr uint32_t most_sums = 64;
struct product {
  int* c;
  uint32_t columns, a[4];
  uint64_t b;
};
// Accumulators that products in flight add to: what they hold meanwhile is nobody's.
struct sums {
  std::array<int, most_sums> values;
  uint32_t count, in_flight;
};
struct thread_state {
  uint64_t* barrier = nullptr;  // that it waits for
  uint32_t parity = 0;
  bool begun = false;
  std::vector<product> open;
  std::deque<std::vector<product>> batches;
  std::map<int*, sums> accumulators;
};

// Of the group that runs.
std::map<uint64_t*, phases> barriers;
std::deque<copy> copies;
std::vector<thread_state> threads;

thread_state& mine() {
  return threads[running()];
}
void see(const char* what) {
  see_use(what);
  if (architecture != 90) refuse("what only sm_90 has");
}
phases& of_barrier(uint64_t* b) {
  const auto found = barriers.find(b);
  if (found == barriers.end()) refuse("a barrier that was not begun");
  return found->second;
}
const char* base() {
  return reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(shared) / shared_alignment *
                                       shared_alignment);
}
// Address bits 4 up are turned by bits 7 up, as far as the span has pieces of 16 bytes.
uint32_t turned(uint32_t address, uint32_t span) {
  const uint32_t pieces = span == 0 ? 1 : span / 16;
  return address ^ (address >> 7 & (pieces - 1)) << 4;
}

void make(const copy& one) {
  const boxes& m = one.of;
  const uint32_t begins = address_of(one.to);
  for (uint64_t row = 0; row < m.box_rows; ++row)
    for (uint64_t byte = 0; byte < m.box_bytes; byte += 16) {
      char piece[16] = {};
      const uint64_t x = one.x + byte, y = one.y + row;
      if (x < m.row_bytes && y < m.rows)
        std::memcpy(piece, reinterpret_cast<const char*>(m.address + y * m.stride + x),
                    std::min<uint64_t>(16, m.row_bytes - x));
      const auto at = static_cast<uint32_t>(begins + row * m.box_bytes + byte);
      std::memcpy(const_cast<char*>(base()) + turned(at, m.span), piece, sizeof piece);
    }
  phases& p = barriers.at(one.barrier);
  p.bytes -= int64_t{m.box_bytes} * m.box_rows;
  p.end_if_complete();
}

// Byte k of column n of an operand in memory, as its descriptor says.
const int8_t* operand(uint64_t b, uint32_t n, uint32_t k) {
  const auto start = static_cast<uint32_t>(b & 0x3fffu) << 4;
  const auto stride = static_cast<uint32_t>(b >> 32 & 0x3fffu) << 4;
  return reinterpret_cast<const int8_t*>(base()) +
         turned(start + n / 8 * stride + n % 8 * 128 + k, 128);
}

// 32 bytes of two rows, from the four lanes that have them.
using two_rows = std::array<std::array<int16_t, 32>, 2>;
two_rows rows_of(const uint64_t* given, unsigned int lane, size_t batch_index) {
  two_rows out;
  for (unsigned int word = 0; word < 4; ++word) {
    const auto& theirs = *reinterpret_cast<const std::vector<product>*>(given[lane / 4 * 4 + word]);
    for (unsigned int i = 0; i < 4; ++i) {
      int8_t bytes[4];
      std::memcpy(bytes, &theirs[batch_index].a[i], 4);
      for (unsigned int byte = 0; byte < 4; ++byte)
        out[i % 2][4 * (word + i / 2 * 4) + byte] = bytes[byte];
    }
  }
  return out;
}
// Nearly all that these kernels take here goes into it.
int products16(const int16_t* a, const int8_t* b) {
#ifdef __SSE2__
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
  const __m128i zero = _mm_setzero_si128();
  const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(zero, bytes), 8);
  const __m128i high = _mm_srai_epi16(_mm_unpackhi_epi8(zero, bytes), 8);
  const auto* wide = reinterpret_cast<const __m128i*>(a);
  const __m128i four = _mm_add_epi32(_mm_madd_epi16(_mm_loadu_si128(wide), low),
                                     _mm_madd_epi16(_mm_loadu_si128(wide + 1), high));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
#else
  int sum = 0;
  for (uint32_t k = 0; k < 16; ++k) sum += a[k] * b[k];
  return sum;
#endif
}
void add_product(const product& p, const two_rows& a, unsigned int lane, sums& to) {
  for (uint32_t i = 0; i < p.columns / 2; ++i) {
    const uint32_t column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    for (uint32_t k = 0; k < 32; k += 16)
      to.values[i] += products16(&a[i / 2 % 2][k], operand(p.b, column, k));
  }
  if (wrong_products && lane == 0) ++to.values[0];
}

int pattern(uint32_t i) {
  return static_cast<int>(0x7a5a5a5au ^ i * 0x01010101u);
}
void check_untouched(const int* c, const sums& of) {
  for (uint32_t i = 0; i < of.count; ++i)
    if (c[i] != pattern(i)) refuse("sums were written while products are added to them");
}

void finish_batch(int line) {
  thread_state& t = mine();
  const std::vector<product> batch = std::move(t.batches.front());
  t.batches.pop_front();
  constexpr unsigned int all = 0xffffffffu;
  const uint64_t* given =
      meet_warp(meeting::product, all, reinterpret_cast<uint64_t>(&batch), line);
  const unsigned int lane = running() % 32;
  for (unsigned int i = 0; i < 32; ++i)
    if (reinterpret_cast<const std::vector<product>*>(given[i])->size() != batch.size())
      refuse("lanes of a warp have batches of different length");
  for (size_t i = 0; i < batch.size(); ++i) {
    sums& to = t.accumulators.at(batch[i].c);
    check_untouched(batch[i].c, to);
    add_product(batch[i], rows_of(given, lane, i), lane, to);
    if (--to.in_flight != 0) continue;
    std::copy_n(to.values.begin(), to.count, batch[i].c);
    t.accumulators.erase(batch[i].c);
  }
  meet_warp(meeting::product, all, 0, line);  // others have read what lies on this stack
}

}  // namespace

void forget_warp_groups(unsigned int count) {
  barriers.clear();
  copies.clear();
  threads.assign(count, {});
}
const char* left_of_warp_groups() {
  if (!copies.empty()) return "copies that nobody waited for";
  for (const thread_state& t : threads)
    if (!t.open.empty() || !t.batches.empty()) return "products that nobody waited for";
  return nullptr;
}
bool phase_is_over(unsigned int thread) {
  const thread_state& t = threads[thread];
  return barriers.at(t.barrier).parity != t.parity;
}
bool make_box_copies() {
  std::vector<copy> now;
  for (const thread_state& t : threads) {
    if (!t.barrier) continue;
    const auto wanted = [&](const copy& one) { return one.barrier == t.barrier; };
    std::copy_if(copies.begin(), copies.end(), std::back_inserter(now), wanted);
    copies.erase(std::remove_if(copies.begin(), copies.end(), wanted), copies.end());
  }
  for (const copy& one : now) make(one);
  return !now.empty();
}

uint32_t address_of(const void* p) {
  return static_cast<uint32_t>(static_cast<const char*>(p) - base());
}
void begin(uint64_t* barrier, uint32_t arrivals) {
  see("begin a barrier");
  if (arrivals == 0 || address_of(barrier) % 8 != 0) refuse("a barrier of nobody, or not aligned");
  if (!barriers.emplace(barrier, phases{arrivals}).second)
    refuse("a barrier that is there already");
}
void arrive_at(uint64_t* barrier, uint32_t bytes) {
  see("arrive");
  phases& p = of_barrier(barrier);
  if (p.arrived == p.arrivals) refuse("more arrivals than a phase has");
  ++p.arrived;
  p.bytes += bytes;
  p.end_if_complete();
}
void wait(uint64_t* barrier, uint32_t parity, int line) {
  see("wait for a phase");
  if (parity > 1) refuse("a parity above 1");
  thread_state& t = mine();
  if (of_barrier(barrier).parity != parity) return;
  t.barrier = barrier;
  t.parity = parity;
  wait_for_phases(line);
  mine().barrier = nullptr;
}
void copy_box(void* to, const bitnet::cuda::tensor_map& map, uint32_t x, uint32_t y, uint64_t* b) {
  see("copy a box");
  copy one{to, {}, x, y, b};
  std::memcpy(&one.of, map.words, sizeof one.of);
  const uint32_t alignment = one.of.span == 0 ? 128 : one.of.span * 8;
  if (one.of.magic != boxes::written) refuse("a tensor map that nobody made");
  if (address_of(to) % std::max(alignment, 128u) != 0) refuse("a box that is not aligned");
  if (x % 16 != 0) refuse("a box that begins within 16 bytes");
  of_barrier(b);
  copies.push_back(one);
}

void begin_products() {
  see("multiply");
  mine().begun = true;
}
void multiply(int* c, uint32_t columns, const uint32_t* a, uint64_t b) {
  see("multiply");
  thread_state& t = mine();
  if (!t.begun) refuse("products without begin_batch()");
  if (b >> 62 != 1) refuse("an operand whose swizzle is not that of 128 bytes");
  product one{c, columns, {}, b};
  std::copy_n(a, 4, one.a);
  const auto [found, first] = t.accumulators.try_emplace(c);
  sums& to = found->second;
  if (first) {
    to.count = columns / 2;
    to.in_flight = 0;
    std::copy_n(c, to.count, to.values.begin());
    for (uint32_t i = 0; i < to.count; ++i) c[i] = pattern(i);
  }
  ++to.in_flight;
  t.open.push_back(one);
}
void end_products() {
  see("multiply");
  thread_state& t = mine();
  t.begun = false;
  t.batches.push_back(std::move(t.open));
  t.open.clear();
}
void wait_for_products(uint32_t left, int line) {
  see("wait for products");
  if (!mine().open.empty()) refuse("products that are in no batch");
  while (mine().batches.size() > left) finish_batch(line);
}

}  // namespace simt
