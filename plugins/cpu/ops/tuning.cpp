#include "tuning.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <vector>

#include "bitnet/sdk/handle.hpp"
#include "ops.hpp"

namespace bitnet::cpu {
namespace {

// The two change independently, so that any mixture of old and new is a tuning.
std::atomic<uint32_t> ahead{tuning{}.ahead};
std::atomic<uint32_t> tile_rows{tuning{}.tile_rows};

constexpr uint32_t distances[] = {2048, 4096, 8192, 16384, 32768};
constexpr uint32_t tiles[] = {16, 32, 64, most_tile_rows};

constexpr uint64_t width = 2560;  // of BitNet b1.58 2B
constexpr uint64_t row_bytes = width / 4;
constexpr uint64_t streamed_bytes = uint64_t{96} << 20;  // more than last-level caches of its kind
constexpr uint64_t prompt_rows = 512, prompt_tokens = 64;

// "name=123", the number being one of `allowed`.
template <std::size_t N>
bool read(std::string_view text, std::string_view name, const uint32_t (&allowed)[N],
          uint32_t& out) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() &&
         std::find(allowed, allowed + N, out) != allowed + N;
}

// The fastest of `candidates` in as many rounds as there is time for, each in turn; `usual` unless
// another is faster by a fiftieth.
template <std::size_t N, class Run>
uint32_t fastest(const uint32_t (&candidates)[N], uint32_t usual, const sdk::host& host,
                 uint64_t budget_ns, const Run& run) {
  uint64_t best[N];
  std::fill_n(best, N, UINT64_MAX);
  const uint64_t start = host.now_ns();
  constexpr int most_rounds = 9;
  for (int round = 0; round < most_rounds; ++round) {
    for (std::size_t i = 0; i < N; ++i) {
      const uint64_t before = host.now_ns();
      run(candidates[i]);
      best[i] = std::min(best[i], host.now_ns() - before);
    }
    if (host.now_ns() - start > budget_ns) break;
  }
  const auto usual_at =
      static_cast<std::size_t>(std::find(candidates, candidates + N, usual) - candidates);
  const auto at = static_cast<std::size_t>(std::min_element(best, best + N) - best);
  return best[at] < best[usual_at] - best[usual_at] / 50 ? candidates[at] : usual;
}

}  // namespace

tuning current_tuning() {
  return {ahead.load(std::memory_order_relaxed), tile_rows.load(std::memory_order_relaxed)};
}

bool adopt_tuning(std::string_view text) {
  const auto blank = text.find(' ');
  if (blank == std::string_view::npos) return false;
  tuning now;
  if (!read(text.substr(0, blank), "ahead=", distances, now.ahead) ||
      !read(text.substr(blank + 1), "tile_rows=", tiles, now.tile_rows))
    return false;
  ahead.store(now.ahead, std::memory_order_relaxed);
  tile_rows.store(now.tile_rows, std::memory_order_relaxed);
  return true;
}

std::string describe_tuning() {
  const tuning now = current_tuning();
  return "ahead=" + std::to_string(now.ahead) + " tile_rows=" + std::to_string(now.tile_rows);
}

void measure_tuning(const isa_form& isa, const sdk::host& host, uint64_t budget_ns) {
  const sdk::memory weights(streamed_bytes);
  const uint64_t rows = streamed_bytes / row_bytes;
  std::vector<int8_t> q(prompt_tokens * width, int8_t{1});
  std::vector<float> s(prompt_tokens, 1.0f), y(std::max(rows, prompt_rows * prompt_tokens));
  const float scale = 1.0f;
  const sdk::weight streamed{
      BITNET_FORMAT_TERNARY2, width, rows, weights.data(), row_bytes, &scale, 0};
  const sdk::weight cached{
      BITNET_FORMAT_TERNARY2, width, prompt_rows, weights.data(), row_bytes, &scale, 0};
  const auto run = [&](const sdk::weight& w, uint64_t tokens) {
    (void)host.parallel_for(w.m, [&](uint64_t first, uint64_t last) noexcept {
      linear_ternary(isa, w, q.data(), s.data(), tokens, first, last, y.data());
    });
  };
  // Pages that were never written are all one page: each worker touches those that it will read.
  (void)host.parallel_for(streamed_bytes, [&](uint64_t first, uint64_t last) noexcept {
    std::fill(weights.data() + first, weights.data() + last, uint8_t{0x55});
  });
  const tuning usual;
  ahead = fastest(distances, usual.ahead, host, budget_ns * 3 / 4, [&](uint32_t distance) {
    ahead = distance;
    run(streamed, 1);
  });
  tile_rows = fastest(tiles, usual.tile_rows, host, budget_ns / 4, [&](uint32_t height) {
    tile_rows = height;
    run(cached, prompt_tokens);
  });
}

}  // namespace bitnet::cpu
