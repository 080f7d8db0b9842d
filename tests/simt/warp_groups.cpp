// Barriers with phases, boxes that are copied for them, and products of warp groups.

#include "warp_groups.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "group.hpp"

namespace simt {

bool wrong_products = false;
bool lost_boxes = false;

namespace {

constexpr uint64_t barrier_magic = 0xba881e80ull << 32;
constexpr int unfinished_sum = 0x7ea5c3e1;
constexpr unsigned char unfinished_byte = 0x96;  // of a box

[[noreturn]] void mistake(const char* what, int line) {
  now->threads[now->running].line = line;
  give_up(what, now->running, 1);
}

void see_word(const char* what, int line) {
  see_wait(what);
  if (architecture != 90) mistake("there is no such instruction but on sm_90", line);
}

// Byte of the group's memory, of which there are so many more.
uint32_t offset_of(const void* p, uint64_t bytes, int line) {
  const auto begin = reinterpret_cast<uintptr_t>(now->memory), at = reinterpret_cast<uintptr_t>(p);
  if (at < begin || at - begin > now->how.shared_bytes ||
      bytes > now->how.shared_bytes - (at - begin))
    mistake("not in memory of the group", line);
  return static_cast<uint32_t>(at - begin);
}
unsigned char* memory_at(uint32_t offset) {
  return static_cast<unsigned char*>(now->memory) + offset;
}

barrier& find_barrier(const uint64_t* b, int line) {
  const uint32_t at = offset_of(b, sizeof *b, line);
  uint64_t word = 0;
  std::memcpy(&word, b, sizeof word);
  const uint64_t index = word ^ barrier_magic;
  if (index >= now->barriers.size() || now->barriers[index].at != at)
    mistake("a barrier that did not begin, or was written over", line);
  barrier& out = now->barriers[index];
  if (out.maker != now->running && !out.known)
    mistake("a barrier that was not shown, or no __syncthreads() after that", line);
  return out;
}
unsigned int index_of(const barrier& b) {
  return static_cast<unsigned int>(&b - now->barriers.data());
}

uint64_t box_size(const box_map& m) {
  return uint64_t{m.box_bytes} * m.box_rows;
}
uint64_t bytes_on_the_way(const barrier& b) {
  uint64_t out = 0;
  for (const box& one : b.boxes) out += box_size(one.map);
  return out;
}

// CUDA programming guide, "Swizzle modes": parts of 16 bytes change places with those of other
// rows. By bits of the address, so that where the box begins does not matter.
uint32_t turned(uint32_t address, uint32_t swizzle) {
  const uint32_t parts = swizzle / 16;
  return parts == 0 ? address : address ^ (address >> 7 & (parts - 1)) << 4;
}

void arrive_in_memory(const box& one) {
  const box_map& m = one.map;
  for (uint64_t i = 0; i < box_size(m); ++i)
    if (*memory_at(one.to + static_cast<uint32_t>(i)) != unfinished_byte)
      mistake("memory was written while a box was copied to it", now->threads[now->running].line);
  for (uint32_t row = 0; row < m.box_rows; ++row)
    for (uint32_t part = 0; part < m.box_bytes; part += 16) {
      unsigned char bytes[16] = {};
      const int64_t x = int64_t{one.x} + part, y = int64_t{one.y} + row;
      if (x >= 0 && y >= 0 && x < static_cast<int64_t>(m.width) && y < static_cast<int64_t>(m.rows))
        std::memcpy(bytes, m.from + static_cast<uint64_t>(y) * m.stride + x,
                    std::min(uint64_t{16}, m.width - static_cast<uint64_t>(x)));
      const uint32_t address = first_address + one.to + row * m.box_bytes + part;
      std::memcpy(memory_at(turned(address, m.swizzle) - first_address), bytes, 16);
    }
}

// True if the phase that runs ends, or can since a thread waits for it.
bool end_phase(barrier& b) {
  if (b.left != 0 || bytes_on_the_way(b) != b.bytes) return false;
  if (lost_boxes && !b.boxes.empty()) return false;
  for (const box& one : b.boxes) arrive_in_memory(one);
  b.boxes.clear();
  b.left = b.arrivals;
  b.bytes = 0;
  ++b.phase;
  return true;
}

void saw(thread& t, unsigned int barrier, uint64_t phase) {
  if (t.phases.size() <= barrier) t.phases.resize(barrier + 1);
  t.phases[barrier] = std::max(t.phases[barrier], phase);
}

box_map decoded(const void* map, int line) {
  box_map out{};
  if (reinterpret_cast<uintptr_t>(map) % 128 != 0) mistake("a map that is not aligned", line);
  std::memcpy(&out, map, sizeof out);
  if (out.magic != box_magic) mistake("a map that was not encoded", line);
  return out;
}

void see_box(const box_map& m, uint32_t to, uint32_t x, int line) {
  const uint32_t alignment = std::max(128u, m.swizzle * 8);
  if ((first_address + to) % alignment != 0)
    mistake("a box at an address that is not aligned", line);
  if (x % 16 != 0) mistake("a box that begins within 16 bytes", line);
  if (m.swizzle != 0 && m.box_bytes != m.swizzle)
    mistake("a box whose rows are not as long as its swizzle", line);
}

bool overlap(uint32_t begin, uint32_t end, uint32_t other, uint32_t other_end) {
  return begin < other_end && other < end;
}

}  // namespace

uint32_t address_in_group(const void* p, int line) {
  return first_address + offset_of(p, 1, line);
}

void make_barrier(uint64_t* b, uint32_t arrivals, int line) {
  see_word("begin barriers", line);
  const uint32_t at = offset_of(b, sizeof *b, line);
  if (at % sizeof *b != 0) mistake("a barrier that is not aligned", line);
  if (arrivals == 0 || arrivals >= 1u << 20) mistake("a barrier of so many", line);
  for (const barrier& other : now->barriers)
    if (overlap(at, at + 8, other.at, other.at + 8)) mistake("a barrier that began already", line);
  const uint64_t word = barrier_magic ^ now->barriers.size();
  std::memcpy(b, &word, sizeof word);
  now->barriers.push_back({at, now->running, arrivals, arrivals, 0, 0, false, false, {}});
}

void show_made_barriers(int line) {
  see_word("show barriers", line);
  for (barrier& b : now->barriers) b.shown |= b.maker == now->running;
}

void come_to_barrier(uint64_t* b, uint32_t bytes, int line) {
  see_word("arrive", line);
  barrier& mine = find_barrier(b, line);
  if (mine.left == 0) mistake("more arrive at a barrier than it expects in a phase", line);
  --mine.left;
  mine.bytes += bytes;
  if (mine.bytes >= 1u << 20) mistake("a barrier that expects so many bytes", line);
  if (mine.left == 0 && bytes_on_the_way(mine) > mine.bytes)
    mistake("more bytes are copied than their barrier expects", line);
  // With bytes it ends at the wait: a read without a wait finds other bytes.
  if (mine.bytes == 0) end_phase(mine);
}

bool await_phase(uint64_t* b, uint32_t parity, bool gives_up, int line) {
  see_word("wait for phases", line);
  barrier& mine = find_barrier(b, line);
  thread& t = now->threads[now->running];
  if (parity > 1) mistake("a parity of neither 0 nor 1", line);
  t.line = line;
  if (mine.phase % 2 == parity && !end_phase(mine)) {
    t.barrier = index_of(mine);
    t.phase = mine.phase + 1;
    t.waits = meeting::phase;
    t.gives_up = gives_up;
    leave();
    if (t.gave_up) return t.gave_up = false;
    saw(t, t.barrier, t.phase);
    return true;
  }
  saw(t, index_of(mine), mine.phase);
  return true;
}

bool give_phases_up() {
  bool some = false;
  for (thread& t : now->threads) {
    if (t.done || t.waits != meeting::phase || !t.gives_up) continue;
    t.waits = meeting::none;
    t.gave_up = some = true;
  }
  return some;
}

bool release_phases(unsigned int first) {
  if (now->barriers.empty()) return false;
  bool some = false;
  for (unsigned int i = first; i < first + lanes; ++i) {
    thread& t = now->threads[i];
    if (t.done || t.waits != meeting::phase) continue;
    barrier& b = now->barriers[t.barrier];
    if (b.phase < t.phase) {
      now->running = i;  // whose mistake is reported
      if (!end_phase(b)) continue;
    }
    if (b.phase > t.phase) give_up("a phase ends before a waiter for the last one went on", i, 1);
    t.waits = meeting::none;
    some = true;
  }
  return some;
}

void copy_box_later(void* to, const void* map, uint32_t x, uint32_t y, uint64_t* b, int line) {
  see_word("copy boxes", line);
  const box_map m = decoded(map, line);
  barrier& mine = find_barrier(b, line);
  if (!mine.shown) mistake("a box for a barrier that was not shown", line);
  const uint32_t begin = offset_of(to, box_size(m), line);
  const auto end = static_cast<uint32_t>(begin + box_size(m));
  see_box(m, begin, x, line);
  for (const barrier& other : now->barriers) {
    if (overlap(begin, end, other.at, other.at + 8)) mistake("a box over a barrier", line);
    for (const box& one : other.boxes)
      if (overlap(begin, end, one.to, static_cast<uint32_t>(one.to + box_size(one.map))))
        mistake("a box over one that has not arrived", line);
  }
  mine.boxes.push_back({m, begin, static_cast<int32_t>(x), static_cast<int32_t>(y)});
  if (mine.left == 0 && bytes_on_the_way(mine) > mine.bytes)
    mistake("more bytes are copied than their barrier expects", line);
  std::memset(memory_at(begin), unfinished_byte, box_size(m));
  auto& landings = now->landings;
  std::erase_if(landings, [&](const landing& l) { return overlap(begin, end, l.begin, l.end); });
  landings.push_back({begin, end, index_of(mine), mine.phase});
}

void begin_warp_groups() {
  now->barriers.clear();
  now->landings.clear();
  const size_t count = now->threads.size();
  now->sequences.assign((count + of_warp_group - 1) / of_warp_group, {});
  now->positions.assign(count / lanes, 0);
}

// What one has seen all have.
void meet_all_phases() {
  for (barrier& b : now->barriers) {
    b.known |= b.shown;
    uint64_t most = 0;
    const unsigned int index = index_of(b);
    for (const thread& t : now->threads)
      if (index < t.phases.size()) most = std::max(most, t.phases[index]);
    if (most != 0)
      for (thread& t : now->threads) saw(t, index, most);
  }
}

void see_group_end() {
  if (lost_boxes) return;  // of a group that did not wait for all of them, all are lost
  for (const barrier& b : now->barriers)
    if (!b.boxes.empty()) give_up("a group ends and boxes have not arrived", b.maker, 1);
  for (size_t w = 0; w < now->positions.size(); ++w)
    if (now->positions[w] != now->sequences[w / 4].size())
      give_up("a warp made fewer products than its warp group",
              static_cast<unsigned int>(w) * lanes, lanes);
}

namespace {

// Of wgmma's matrix descriptor: where columns of b are.
struct columns {
  uint32_t begin;   // address
  uint32_t stride;  // bytes from eight columns to the next

  // Bytes k to k + 15 of a column.
  uint32_t part(uint32_t column, uint32_t k) const {
    return turned(begin + column / 8 * stride + column % 8 * 128 + k, 128);
  }
};
columns read_descriptor(uint64_t b, int line) {
  constexpr uint64_t known = 0x3fff | uint64_t{0x3fff} << 16 | uint64_t{0x3fff} << 32;
  if ((b & ~known) != uint64_t{1} << 62)
    mistake("a descriptor of something else than 128-byte swizzle", line);
  const columns out{static_cast<uint32_t>(b & 0x3fff) << 4, static_cast<uint32_t>(b >> 32 & 0x3fff)
                                                                << 4};
  if ((out.begin & 0x380) != 0 || out.begin % 128 + 32 > 128 || out.stride % 1024 != 0)
    mistake("a descriptor whose rows are not aligned", line);
  return out;
}

// 32 bytes of each column of b, as they are now.
std::vector<int8_t> read_columns(const product& p) {
  const columns b = read_descriptor(p.b, p.line);
  std::vector<int8_t> out(size_t{32} * p.columns);
  for (uint32_t i = 0; i < 2 * p.columns; ++i) {
    const uint32_t at = b.part(i / 2, i % 2 * 16) - first_address;
    if (at + uint64_t{16} > now->how.shared_bytes)  // before it begins: far behind
      mistake("columns that are not in memory of the group", p.line);
    std::memcpy(&out[size_t{16} * i], memory_at(at), 16);
  }
  return out;
}

// A lane of the warp has waited for what was copied there.
void see_landings(const product& p, unsigned int first) {
  const columns b = read_descriptor(p.b, p.line);
  const uint32_t begin = b.begin / 128 * 128 - first_address;
  const uint32_t end = begin + (p.columns / 8 - 1) * b.stride + 1024;
  for (const landing& l : now->landings) {
    if (!overlap(begin, end, l.begin, l.end)) continue;
    bool seen = false;
    for (unsigned int i = first; i < first + lanes; ++i) {
      const auto& phases = now->threads[i].phases;
      seen |= l.barrier < phases.size() && phases[l.barrier] > l.phase;
    }
    if (!seen) mistake("products of boxes that the warp did not wait for", p.line);
  }
}

// Moves sums away: until the products are waited for, no thread may touch them.
void hide_sums(multiplying& m, int* c, uint32_t count, int line) {
  for (sums& s : m.sums) {
    if (s.at == c && s.count == count) {
      ++s.in_flight;
      return;
    }
    if (c < s.at + s.count && s.at < c + count) mistake("sums that overlap others", line);
  }
  m.sums.push_back({c, count, {c, c + count}, 1});
  std::fill_n(c, count, unfinished_sum);
}
sums& sums_of(multiplying& m, const int* c) {
  return *std::find_if(m.sums.begin(), m.sums.end(), [&](const sums& s) { return s.at == c; });
}
// Those that nothing in flight is added to go back.
void show_sums(multiplying& m) {
  std::erase_if(m.sums, [](const sums& s) {
    for (uint32_t i = 0; i < s.count; ++i)
      if (s.at[i] != unfinished_sum)
        mistake("sums were touched before their products were waited for",
                now->threads[now->running].line);
    if (s.in_flight == 0) std::copy(s.values.begin(), s.values.end(), s.at);
    return s.in_flight == 0;
  });
}

// All lanes of the warp have the same products in the same batches.
void see_lanes(unsigned int first) {
  const multiplying& leader = now->threads[first].multiplies;
  for (unsigned int i = first; i < first + lanes; ++i) {
    const multiplying& m = now->threads[i].multiplies;
    bool same = m.batches == leader.batches && m.products.size() == leader.products.size();
    for (size_t p = 0; same && p < m.products.size(); ++p) {
      const product &mine = m.products[p], &other = leader.products[p];
      same = mine.columns == other.columns && mine.b == other.b && mine.adds == other.adds &&
             mine.line == other.line;
    }
    if (!same) give_up("lanes of a warp make different products", first, lanes);
  }
}

// The warps of a warp group make the same ones.
void see_sequence(const product& p, unsigned int first) {
  auto& sequence = now->sequences[first / of_warp_group];
  size_t& position = now->positions[first / lanes];
  if (position == sequence.size()) sequence.push_back({p.columns, p.b, p.adds, p.line});
  const said& other = sequence[position++];
  if (other.columns != p.columns || other.b != p.b || other.adds != p.adds || other.line != p.line)
    give_up("warps of a warp group make different products", first, lanes);
}

// Two elements of 16 bits each of one row or column, as one word: for pmaddwd.
uint32_t pair(int8_t low, int8_t high) {
  return uint32_t{static_cast<uint16_t>(low)} | uint32_t{static_cast<uint16_t>(high)} << 16;
}
// sums[i] += products of two elements of a and of column i of b.
void add_products(uint32_t a, const uint32_t* b, int* to, uint32_t count) {
#ifdef __SSE2__
  const __m128i wide = _mm_set1_epi32(static_cast<int>(a));
  for (uint32_t i = 0; i < count; i += 4) {
    auto* at = reinterpret_cast<__m128i*>(to + i);
    const __m128i column = _mm_load_si128(reinterpret_cast<const __m128i*>(b + i));
    _mm_store_si128(at, _mm_add_epi32(_mm_load_si128(at), _mm_madd_epi16(wide, column)));
  }
#else
  const auto half = [](uint32_t pair, int shift) {
    return int{static_cast<int16_t>(pair >> shift & 0xffffu)};
  };
  for (uint32_t i = 0; i < count; ++i) {
    const int sum = half(a, 0) * half(b[i], 0) + half(a, 16) * half(b[i], 16);
    to[i] = static_cast<int>(static_cast<uint32_t>(to[i]) + static_cast<uint32_t>(sum));
  }
#endif
}

// Of 16 rows of a: PTX, "Register fragments for wgmma.m64nNk32".
void read_rows(unsigned int first, size_t p, uint32_t (&pairs)[16][16]) {
  for (unsigned int lane = 0; lane < lanes; ++lane)
    for (unsigned int i = 0; i < 4; ++i) {
      const uint32_t word = now->threads[first + lane].multiplies.products[p].a[i];
      const unsigned int row = lane / 4 + i % 2 * 8, at = (lane % 4 + i / 2 * 4) * 2;
      for (unsigned int half = 0; half < 2; ++half)
        pairs[row][at + half] = pair(static_cast<int8_t>(word >> (16 * half)),
                                     static_cast<int8_t>(word >> (16 * half + 8)));
    }
}

// The p-th product of every lane of the warp.
void multiply_warp(unsigned int first, size_t p) {
  const product& leader = now->threads[first].multiplies.products[p];
  if (read_columns(leader) != leader.seen)
    mistake("memory was written before products of it were waited for", leader.line);
  see_sequence(leader, first);
  uint32_t rows[16][16];
  read_rows(first, p, rows);
  alignas(16) std::array<uint32_t, size_t{16} * 128> pairs;
  for (uint32_t n = 0; n < leader.columns; ++n)
    for (uint32_t k = 0; k < 16; ++k)
      pairs[size_t{k} * 128 + n] =
          pair(leader.seen[size_t{32} * n + 2 * k], leader.seen[size_t{32} * n + 2 * k + 1]);
  alignas(16) int out[16][128] = {};
  for (uint32_t row = 0; row < 16; ++row)
    for (uint32_t k = 0; k < 16; ++k)
      add_products(rows[row][k], &pairs[size_t{k} * 128], out[row], leader.columns);
  if (wrong_products) ++out[0][0];
  for (unsigned int lane = 0; lane < lanes; ++lane) {
    multiplying& m = now->threads[first + lane].multiplies;
    sums& s = sums_of(m, m.products[p].c);
    --s.in_flight;
    for (uint32_t i = 0; i < s.count; ++i) {
      const int more = out[lane / 4 + i % 4 / 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2];
      const uint32_t before = leader.adds ? static_cast<uint32_t>(s.values[i]) : 0;
      s.values[i] = static_cast<int>(before + static_cast<uint32_t>(more));
    }
  }
}

}  // namespace

void open_batch(int line) {
  see_word("multiply", line);
  now->threads[now->running].multiplies.begun = true;
}

void multiply_later(int* c, const uint32_t* a, uint64_t b, uint32_t columns, bool adds, int line) {
  see_word("multiply", line);
  const unsigned int lane = now->running % lanes, first = now->running - lane;
  if (first / of_warp_group * of_warp_group + of_warp_group > now->threads.size())
    mistake("a warp group that lacks warps", line);
  multiplying& m = now->threads[now->running].multiplies;
  if (!m.begun) mistake("products without begin_batch() before them", line);
  product made{columns, {a[0], a[1], a[2], a[3]}, b, c, adds, line, {}};
  if (lane == 0) {
    see_landings(made, first);
    made.seen = read_columns(made);
  }
  hide_sums(m, c, columns / 2, line);
  m.products.push_back(std::move(made));
  ++m.open;
}

void close_batch(int line) {
  see_word("multiply", line);
  multiplying& m = now->threads[now->running].multiplies;
  m.batches.push_back(m.open);  // which may be none
  m.open = 0;
  m.begun = false;
}

void await_batches(uint32_t left, int line) {
  see_word("multiply", line);
  thread& t = now->threads[now->running];
  if (t.multiplies.open != 0) mistake("a wait for products that are in no batch", line);
  meet_warp(meeting::batches, 0xffffffffu, 0, line);
  if (now->running % lanes != 0) return;
  // The first lane goes on before the others, and does it for all.
  const unsigned int first = now->running;
  see_lanes(first);
  const auto& batches = t.multiplies.batches;
  const size_t done = batches.size() - std::min<size_t>(left, batches.size());
  size_t products = 0;
  for (size_t i = 0; i < done; ++i) products += batches[i];
  for (size_t p = 0; p < products; ++p) multiply_warp(first, p);
  for (unsigned int i = first; i < first + lanes; ++i) {
    multiplying& m = now->threads[i].multiplies;
    m.products.erase(m.products.begin(), m.products.begin() + static_cast<ptrdiff_t>(products));
    m.batches.erase(m.batches.begin(), m.batches.begin() + static_cast<ptrdiff_t>(done));
    now->running = i;  // whose mistake is reported
    show_sums(m);
  }
  now->running = first;
}

void see_thread_end() {
  const multiplying& m = now->threads[now->running].multiplies;
  if (!m.products.empty())
    give_up("a thread leaves and did not wait for products", now->running, 1);
}

}  // namespace simt
