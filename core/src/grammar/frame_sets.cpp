#include "grammar/frame_sets.hpp"

#include <algorithm>

namespace bitnet::grammar {
namespace {

uint64_t hash_of(std::span<const frame> frames) {
  uint64_t hash = frames.size();
  for (const frame& f : frames) {
    hash ^= uint64_t{f.position} << 32 | f.below;
    hash *= 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

frame_sets::frame_sets() {
  numbered(std::vector<frame>{{0, end}});
  numbered({});
}

std::span<const frame> frame_sets::of(set_number set) const {
  return std::span(frames_).subspan(sets_[set].begin, sets_[set].size);
}

set_number frame_sets::number_of(std::vector<frame>& frames) {
  work_ += frames.size();
  std::ranges::sort(frames);
  std::size_t n = 0;
  for (const frame& f : frames) {
    if (n == 0 || frames[n - 1].position != f.position)
      frames[n++] = f;
    else if (frames[n - 1].below != f.below)
      frames[n - 1].below = united(frames[n - 1].below, f.below);
  }
  frames.resize(n);
  return numbered(frames);
}

// Recursion goes as deep as the sets do, which the automaton bounds.
set_number frame_sets::united(set_number a, set_number b) {  // NOLINT(misc-no-recursion)
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  const uint64_t key = uint64_t{a} << 32 | b;
  if (const auto known = unions_.find(key); known != unions_.end()) return known->second;
  const auto first = of(a);
  std::vector<frame> both(first.begin(), first.end());
  const auto second = of(b);
  both.insert(both.end(), second.begin(), second.end());
  const set_number out = number_of(both);
  unions_.emplace(key, out);
  return out;
}

set_number frame_sets::numbered(std::span<const frame> sorted) {
  const uint64_t hash = hash_of(sorted);
  for (auto [at, last] = by_hash_.equal_range(hash); at != last; ++at)
    if (std::ranges::equal(of(at->second), sorted)) return at->second;
  uint32_t depth = 0;
  for (const frame& f : sorted)
    if (f.position != 0) depth = std::max(depth, sets_[f.below].depth + 1);
  const auto number = static_cast<set_number>(sets_.size());
  sets_.push_back(
      {static_cast<uint32_t>(frames_.size()), static_cast<uint32_t>(sorted.size()), depth});
  frames_.insert(frames_.end(), sorted.begin(), sorted.end());
  by_hash_.emplace(hash, number);
  return number;
}

set_number frame_sets::copy_to(  // NOLINT(misc-no-recursion): as deep as the set
    frame_sets& to, set_number set, std::unordered_map<set_number, set_number>& copied) const {
  if (set == end || set == none) return set;
  if (const auto known = copied.find(set); known != copied.end()) return known->second;
  std::vector<frame> frames;
  for (const frame& f : of(set))
    frames.push_back({f.position, f.position == 0 ? end : copy_to(to, f.below, copied)});
  return copied[set] = to.number_of(frames);
}

uint64_t frame_sets::bytes() const {
  constexpr uint64_t of_node = 48;  // of an unordered map, with its part of the table
  return frames_.size() * sizeof(frame) + sets_.size() * sizeof(extent) +
         (by_hash_.size() + unions_.size()) * of_node;
}

}  // namespace bitnet::grammar
