#include "known_answer.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

namespace bitnet::webgpu {
namespace {

using sdk::failed;

uint32_t bits_of(float value) {
  return std::bit_cast<uint32_t>(value);
}

// A square that needs more than 24 bits, a number that cancels most of it, and one to round.
constexpr float long_square = 1.0f + 0x1p-12f, taken_away = -1.0f, to_round = 2.5f;

struct expected {
  const char* what;
  uint32_t word;
  uint32_t slack = 0;  // units in the last place
};

// For `threads` numbers 1, 2, 3 ...; known_answer.wgsl has them in this order.
std::vector<expected> answers(uint32_t threads) {
  const uint32_t all = threads * (threads + 1) / 2;
  const volatile float square =
      long_square * long_square;  // rounded, even if the compiler would fuse
  return {{"a product of packed bytes", static_cast<uint32_t>(1 * -1 + 2 * 3 - 128 * 127 + 4 * -5)},
          {"a product that is rounded before it is added to", bits_of(square + taken_away)},
          {"a half rounded to even", bits_of(2.0f)},
          {"a division by integers", bits_of(127.0f / to_round)},
          {"the rest of a sum", bits_of(to_round * 0x1p-24f - 0x1p-23f)},
          {"more than f16 holds, in f32", bits_of(4.0f * 65504.0f)},
          {"a number too large for f16", 0x7c00},
          {"an exponential", bits_of(std::exp(to_round)), 4},
          {"a comparison with what is no number", bits_of(0.5f)},
          {"the largest of a work group", bits_of(static_cast<float>(threads))},
          {"the sum of a work group", bits_of(static_cast<float>(all))},
          {"the header", 7 + 1}};
}

bool close(uint32_t got, const expected& want) {
  const auto off = static_cast<int64_t>(got) - static_cast<int64_t>(want.word);
  return std::abs(off) <= static_cast<int64_t>(want.slack);
}

bitnet_status compare(const device& d, const uint32_t* got, const std::vector<expected>& all,
                      const sdk::reporter& report) {
  for (size_t i = 0; i < all.size(); ++i)
    if (!close(got[i], all[i]))
      return report.fail(BITNET_UNAVAILABLE,
                         "%s computes wrong numbers: %s is %08x and not %08x; update the driver or "
                         "use another device",
                         d.describe().name.c_str(), all[i].what, got[i], all[i].word);
  return BITNET_OK;
}

}  // namespace

bitnet_status check_answers(device& d, const sdk::reporter& report) {
  const uint32_t threads = d.describe().capabilities.group_size;
  const std::vector<expected> all = answers(threads);
  std::vector<uint32_t> given = {0x04800201u, 0xfb7f03ffu};
  for (uint32_t t = 1; t <= threads; ++t) given.push_back(bits_of(static_cast<float>(t)));
  given.push_back(0x7fc00000u);  // NaN
  std::unique_ptr<gpu::buffer> header, in, out;
  const auto make = [&](std::unique_ptr<gpu::buffer>& one, uint64_t words) {
    return d.allocate(4 * words, gpu::memory_place::host, one, report);
  };
  if (bitnet_status s = make(header, 16); failed(s)) return s;
  if (bitnet_status s = make(in, given.size()); failed(s)) return s;
  if (bitnet_status s = make(out, all.size()); failed(s)) return s;
  static_cast<uint32_t*>(header->mapped())[3] = 7;
  std::memcpy(in->mapped(), given.data(), 4 * given.size());
  std::unique_ptr<gpu::kernel> compiled;
  if (bitnet_status s = d.make_kernel({known_answer, {threads}}, compiled, report); failed(s))
    return s;
  gpu::command run;
  run.run = compiled.get();
  run.bindings = {
      {header.get(), 0, 64}, {in.get(), 0, in->size()}, {out.get(), 0, out->size(), true}};
  run.params = {bits_of(long_square), bits_of(taken_away), bits_of(to_round)};
  std::unique_ptr<gpu::recording> work;
  if (bitnet_status s = d.record({&run, 1}, false, work, report); failed(s)) return s;
  std::unique_ptr<gpu::queue> turn;
  if (bitnet_status s = d.make_queue(turn, report); failed(s)) return s;
  if (bitnet_status s = turn->submit(*work, 1, report); failed(s)) return s;
  constexpr uint64_t patience_ns = 30'000'000'000;
  if (bitnet_status s = turn->wait(1, patience_ns, report); failed(s)) return s;
  return compare(d, static_cast<const uint32_t*>(out->mapped()), all, report);
}

}  // namespace bitnet::webgpu
