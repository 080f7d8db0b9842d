#include "inflate.hpp"

#include <algorithm>
#include <array>

namespace bitnet::rocm {
namespace {

constexpr uint32_t longest_code = 15, most_symbols = 288;

// Bits of a stream, the lowest of each byte first. Past its end there are zeros, and `good` is
// false.
class bit_reader {
 public:
  explicit bit_reader(std::span<const uint8_t> from) : from_(from) {}
  uint32_t bits(uint32_t n) {
    while (held_ < n) {
      good_ &= at_ < from_.size();
      word_ |= uint64_t{at_ < from_.size() ? from_[at_] : uint8_t{0}} << held_;
      ++at_;
      held_ += 8;
    }
    const auto out = static_cast<uint32_t>(word_ & ((uint64_t{1} << n) - 1));
    word_ >>= n;
    held_ -= n;
    return out;
  }
  // Up to the next whole byte.
  void align() { bits(held_ % 8); }
  bool good() const { return good_; }

 private:
  std::span<const uint8_t> from_;
  size_t at_ = 0;
  uint64_t word_ = 0;
  uint32_t held_ = 0;
  bool good_ = true;
};

// Symbols by their lengths of code, as RFC 1951, 3.2.2, numbers them.
class code {
 public:
  // False: more codes of a length than there can be.
  bool set(std::span<const uint8_t> lengths) {
    count_.fill(0);
    for (const uint8_t one : lengths) ++count_[one];
    count_[0] = 0;
    int left = 1;
    std::array<uint16_t, longest_code + 2> first{};
    for (uint32_t n = 1; n <= longest_code; ++n) {
      left = 2 * left - count_[n];
      if (left < 0) return false;
      first[n + 1] = static_cast<uint16_t>(first[n] + count_[n]);
    }
    for (uint32_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] != 0) symbols_[first[lengths[i]]++] = static_cast<uint16_t>(i);
    return true;
  }
  // most_symbols where there is no such code.
  uint32_t next(bit_reader& from) const {
    int mine = 0, first = 0, index = 0;
    for (uint32_t n = 1; n <= longest_code; ++n) {
      mine |= static_cast<int>(from.bits(1));
      if (mine - first < count_[n]) return symbols_[static_cast<size_t>(index + mine - first)];
      index += count_[n];
      first = 2 * (first + count_[n]);
      mine *= 2;
    }
    return most_symbols;
  }

 private:
  std::array<uint16_t, longest_code + 1> count_{};
  std::array<uint16_t, most_symbols> symbols_{};
};

struct codes {
  code literals, distances;
};

bool set_fixed(codes& out) {
  std::array<uint8_t, most_symbols> literals{};
  for (uint32_t i = 0; i < most_symbols; ++i)
    literals[i] = static_cast<uint8_t>(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
  std::array<uint8_t, 30> distances{};
  distances.fill(5);
  return out.literals.set(literals) && out.distances.set(distances);
}

// RFC 1951, 3.2.7.
bool read_codes(bit_reader& from, codes& out) {
  constexpr uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  const uint32_t literals = from.bits(5) + 257, distances = from.bits(5) + 1;
  const uint32_t given = from.bits(4) + 4;
  if (literals > 286 || distances > 30) return false;
  std::array<uint8_t, 19> of_lengths{};
  for (uint32_t i = 0; i < given; ++i) of_lengths[order[i]] = static_cast<uint8_t>(from.bits(3));
  code by;
  if (!by.set(of_lengths)) return false;
  std::array<uint8_t, 320> lengths{};
  for (uint32_t n = 0; n < literals + distances;) {
    const uint32_t symbol = by.next(from);
    if (symbol < 16) {
      lengths[n++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol > 18 || (symbol == 16 && n == 0) || !from.good()) return false;
    const uint8_t same = symbol == 16 ? lengths[n - 1] : uint8_t{0};
    uint32_t times = symbol == 18 ? 11 + from.bits(7) : 3 + from.bits(symbol == 16 ? 2 : 3);
    if (times > literals + distances - n) return false;
    while (times-- != 0) lengths[n++] = same;
  }
  const std::span<const uint8_t> all(lengths);
  return out.literals.set(all.subspan(0, literals)) &&
         out.distances.set(all.subspan(literals, distances));
}

// A length or a distance: three or, of lengths, four symbols have one more bit each time, but for
// the last length, 258.
bool read_length(bit_reader& from, uint32_t symbol, uint32_t& out) {
  if (symbol > 28) return false;
  const uint32_t extra = symbol < 8 || symbol == 28 ? 0 : symbol / 4 - 1;
  const uint32_t base = symbol < 8 ? symbol : (4 + symbol % 4) << extra;
  out = symbol == 28 ? 258 : 3 + base + from.bits(extra);
  return true;
}
bool read_distance(bit_reader& from, uint32_t symbol, uint32_t& out) {
  if (symbol > 29) return false;
  const uint32_t extra = symbol < 4 ? 0 : symbol / 2 - 1;
  const uint32_t base = symbol < 4 ? symbol : (2 + symbol % 2) << extra;
  out = 1 + base + from.bits(extra);
  return true;
}

bool copy_block(bit_reader& from, const codes& by, uint64_t bytes, std::vector<uint8_t>& out) {
  while (from.good()) {
    const uint32_t symbol = by.literals.next(from);
    if (symbol == 256) return from.good();
    if (symbol < 256) {
      if (out.size() == bytes) return false;
      out.push_back(static_cast<uint8_t>(symbol));
      continue;
    }
    uint32_t length = 0, distance = 0;
    if (!read_length(from, symbol - 257, length) ||
        !read_distance(from, by.distances.next(from), distance))
      return false;
    if (distance > out.size() || length > bytes - out.size()) return false;
    for (uint32_t i = 0; i < length; ++i) out.push_back(out[out.size() - distance]);
  }
  return false;
}

bool copy_stored(bit_reader& from, uint64_t bytes, std::vector<uint8_t>& out) {
  from.align();
  const uint32_t length = from.bits(16), inverse = from.bits(16);
  if ((length ^ inverse) != 0xffff || length > bytes - out.size()) return false;
  for (uint32_t i = 0; i < length && from.good(); ++i)
    out.push_back(static_cast<uint8_t>(from.bits(8)));
  return from.good();
}

}  // namespace

bool inflate(std::span<const uint8_t> packed, uint64_t bytes, std::vector<uint8_t>& out) {
  bit_reader from(packed);
  out.clear();
  out.reserve(bytes);
  for (bool last = false; !last;) {
    last = from.bits(1) != 0;
    const uint32_t kind = from.bits(2);
    codes by;
    const bool good = kind == 0   ? copy_stored(from, bytes, out)
                      : kind == 1 ? set_fixed(by) && copy_block(from, by, bytes, out)
                      : kind == 2 ? read_codes(from, by) && copy_block(from, by, bytes, out)
                                  : false;
    if (!good) return false;
  }
  return out.size() == bytes;
}

}  // namespace bitnet::rocm
