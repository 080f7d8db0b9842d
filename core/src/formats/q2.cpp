#include "formats/q2.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/floats.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/text.hpp"

namespace bitnet::formats {
namespace {

struct candidate {
  q2_layout id;
  std::string_view name;
  uint64_t elements, bytes;    // of a block
  const two_bit_block* codes;  // nullptr: no 2-bit codes
};
constexpr std::array candidates = {
    candidate{q2_layout::groups_64, "Q2_0 in groups of 64, the scale first", 64, 18, &q2_block_64},
    candidate{q2_layout::groups_128, "Q2_0 in groups of 128, the scale first", 128, 34,
              &q2_block_128},
    candidate{q2_layout::groups_128_scale_last, "Q2_0 in groups of 128, the scale last", 128, 34,
              &q2_block_128_scale_last},
    candidate{q2_layout::stq1_0, "STQ1_0 under the type of Q2_0", stq_block, stq_block_bytes,
              nullptr}};

// The size of a tensor in the file is its exact size, or that with padding.
bool fits(const q2_tensor& t, const candidate& l) {
  if (t.k % l.elements != 0) return false;
  const uint64_t size = t.elements / l.elements * l.bytes;
  return t.bytes.size() == size || gguf::checked_pad(size, t.alignment) == t.bytes.size();
}

// Blocks checked per tensor: enough to be sure, few enough to be fast.
constexpr uint64_t most_blocks = 4096;

// Counts blocks that no writer of this layout makes: read with a wrong offset, scales and codes
// seldom look valid.
uint64_t impossible_blocks(const q2_tensor& t, const candidate& l) {
  uint64_t found = 0;
  const uint64_t n = std::min(t.elements / l.elements, most_blocks);
  for (uint64_t i = 0; i < n; ++i) {
    const auto block = t.bytes.subspan(i * l.bytes, l.bytes);
    const uint64_t scale = l.codes != nullptr ? l.codes->scale : stq_scale;
    const float d = from_f16(gguf::load<uint16_t>(block.subspan(scale)));
    const bool right =
        std::isfinite(d) && d >= 0 &&
        (l.codes == nullptr || !has_code_3(block.subspan(l.codes->codes, l.elements / 4)));
    found += right ? 0 : 1;
  }
  return found;
}

constexpr std::string_view advice =
    "convert the model anew, into PQ2_0, TQ2_0 or Q2_0 of groups of 64";

std::string names_of(const std::vector<const candidate*>& some) {
  std::string out;
  for (const candidate* l : some) out += fmt::format("{}{}", out.empty() ? "" : " or ", l->name);
  return out;
}

std::string spoken(const q2_tensor& t) {
  return t.name.empty() ? "it" : fmt::format("tensor {}", gguf::quote(t.name));
}

std::vector<const candidate*> fitting(const q2_tensor& t) {
  std::vector<const candidate*> out;
  for (const candidate& l : candidates)
    if (fits(t, l)) out.push_back(&l);
  return out;
}

// The candidates whose sizes fit every tensor.
result<std::vector<const candidate*>> candidates_by_size(std::span<const q2_tensor> all) {
  std::vector<const candidate*> left;
  for (const q2_tensor& t : all) {
    const auto here = fitting(t);
    if (here.empty())
      return fail(
          BITNET_UNSUPPORTED,
          fmt::format("{} is of type 42 and has rows of {} elements, {} in all, in {} "
                      "bytes; expected {} (Q2_0 in groups of 64), {} (in groups of 128) or "
                      "{} (STQ1_0), up to padding: download it again if it may be cut off, or {}",
                      spoken(t), t.k, t.elements, t.bytes.size(), t.elements / 64 * 18,
                      t.elements / 128 * 34, t.elements / stq_block * stq_block_bytes, advice));
    if (left.empty()) left = here;
    const auto before = left;
    std::erase_if(left,
                  [&](const candidate* l) { return std::ranges::find(here, l) == here.end(); });
    if (left.empty())
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("type 42 means two things in this file: {} fits {}, those "
                              "before it {}: {}",
                              spoken(t), names_of(here), names_of(before), advice));
  }
  return left;
}

uint64_t impossible_blocks(std::span<const q2_tensor> all, const candidate& l) {
  uint64_t sum = 0;
  for (const q2_tensor& t : all) sum += impossible_blocks(t, l);
  return sum;
}

// Whether `wrong` impossible blocks are clearly fewer than `other`.
bool clearly_less(uint64_t wrong, uint64_t other) {
  constexpr uint64_t margin = 100;
  return other > 0 && other / margin >= wrong;
}

// The layout with a hundred times fewer impossible blocks than each other one.
result<q2_finding> recognise_by_blocks(std::span<const q2_tensor> all,
                                       const std::vector<const candidate*>& left) {
  std::vector<uint64_t> wrong;
  wrong.reserve(left.size());
  for (const candidate* l : left) wrong.push_back(impossible_blocks(all, *l));
  std::string counts;
  for (size_t i = 0; i < left.size(); ++i) {
    const auto loses = [&](uint64_t other) { return clearly_less(wrong[i], other); };
    if (std::cmp_equal(std::ranges::count_if(wrong, loses) + 1, left.size()))
      return q2_finding{left[i]->id, q2_evidence::blocks};
    counts += fmt::format("{}{} makes {} blocks impossible", counts.empty() ? "" : ", ",
                          left[i]->name, wrong[i]);
  }
  return fail(
      BITNET_UNSUPPORTED,
      fmt::format("type 42 has more than one layout, and neither sizes nor blocks show which "
                  "this file has ({}): {}; or, if the scales stand last, say so by the text "
                  "TQ2_0_G128 in its key general.quantization_version",
                  counts, advice));
}

const candidate& candidate_of(q2_layout id) {
  return *std::ranges::find(candidates, id, &candidate::id);
}

// Rejects a key that the blocks contradict: it is left over, or another program means something
// else by it. By that key the weights would be garbage.
result<void> check_key(std::span<const q2_tensor> all) {
  const uint64_t last = impossible_blocks(all, candidate_of(q2_layout::groups_128_scale_last));
  const uint64_t first = impossible_blocks(all, candidate_of(q2_layout::groups_128));
  if (!clearly_less(first, last)) return {};
  return fail(
      BITNET_UNSUPPORTED,
      fmt::format("a key says that the scales of type 42 stand last (oxibonsai.quant_format, or "
                  "general.quantization_version of the text TQ2_0_G128), and the blocks say that "
                  "they stand first: {} are impossible with the scale last, {} with the scale "
                  "first. Remove the key, or {}",
                  last, first, advice));
}

}  // namespace

result<q2_finding> find_q2_layout(std::span<const q2_tensor> all, bool scale_is_last) {
  auto left = candidates_by_size(all);
  if (!left) return std::unexpected(left.error());
  if (left->size() == 1) return q2_finding{left->front()->id, q2_evidence::size};
  const auto is_first = [](const candidate* l) { return l->id == q2_layout::groups_128; };
  if (scale_is_last && std::ranges::any_of(*left, is_first)) {
    if (auto ok = check_key(all); !ok) return std::unexpected(ok.error());
    std::erase_if(*left, is_first);
  }
  if (left->size() == 1) return q2_finding{left->front()->id, q2_evidence::key};
  return recognise_by_blocks(all, *left);
}

std::string_view q2_layout_name(q2_layout id) {
  const auto* at = std::ranges::find(candidates, id, &candidate::id);
  return at == candidates.end() ? "Q2_0" : at->name;
}

std::string_view q2_evidence_name(q2_evidence by) {
  constexpr std::array<std::string_view, 3> names = {"by the sizes of its tensors", "by a key",
                                                     "by its blocks"};
  return names[static_cast<size_t>(by)];
}

}  // namespace bitnet::formats
