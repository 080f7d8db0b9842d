#include "tuning.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <ctime>
#include <mutex>
#include <vector>

#include "bitnet/abi/tuning.h"
#include "bitnet/sdk/handle.hpp"
#include "last_level_cache.hpp"
#include "ops.hpp"
#include "timings.hpp"

namespace bitnet::cpu {
namespace {

// They change independently, so every mixture of old and new values is valid.
std::atomic<uint32_t> ahead{tuning{}.ahead};
std::atomic<uint32_t> tile_rows{tuning{}.tile_rows};
std::atomic<bool> fives{tuning{}.fives};

// The candidates: bytes ahead, rows of a tile, and without and with codes of five weights. The text
// of a tuning has room for five and four figures.
constexpr std::array<uint32_t, 5> distances = {2048, 3072, 4096, 8192, 16384};
constexpr std::array<uint32_t, 4> tiles = {16, 32, 64, most_tile_rows};
constexpr std::array<uint32_t, 2> without_and_with = {0, 1};

// Limits of a figure: three digits can express it, and it is not read as 0.
constexpr double least_figure = 0.01, most_figure = 99999;

// Evidence for the settings.
struct evidence {
  double stream = 0;         // GB/s, the best so far; 0: never measured
  int64_t unsettled = 0;     // seconds since 1970; 0: the settings are reliable
  bool small_pages = false;  // the pages of the measured memory
  std::string table;         // words, each after a blank
};
std::mutex mutex;
evidence known;  // under mutex

// The measured products. A stream is one token by parts of rows; a prompt is a few tokens by a
// matrix that is read from the caches.
constexpr uint64_t width = 2560;  // of BitNet b1.58 2B
constexpr uint64_t row_bytes = width / 4;
constexpr uint64_t prompt_rows = 512, prompt_tokens = 12;
static_assert(prompt_tokens < fewest_panel_tokens, "panels have no tiles of rows");
constexpr uint64_t part_rows = 13'000;  // 8 MB; one timing streams them
// Bytes, twelve parts, where the caches are small (bytes_to_stream).
constexpr uint64_t least_streamed = uint64_t{96} << 20;
constexpr double far_below = 0.75;     // of the best stream: another program was reading
constexpr int64_t rest_seconds = 600;  // wait before an unreliable result is measured again
// Between these bounds the permitted time decides. Fewer rounds make the median less reliable.
constexpr std::size_t most_rounds = 31, least_rounds = 5;

template <class Number>
bool whole_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// Reads "name=123" if the number is one of `allowed`.
template <std::size_t N>
bool read(std::string_view text, std::string_view name, const std::array<uint32_t, N>& allowed,
          uint32_t& out) {
  if (!text.starts_with(name)) return false;
  return whole_number(text.substr(name.size()), out) &&
         std::ranges::find(allowed, out) != allowed.end();
}

// True for a word such as "ahead:4096=30.1~2".
template <std::size_t N>
bool is_figure(std::string_view text, std::string_view name,
               const std::array<uint32_t, N>& allowed) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  const auto equals = text.find('='), wave = text.find('~');
  uint32_t value = 0, percent = 0;
  double figure = 0;
  return equals < wave && wave != std::string_view::npos &&
         whole_number(text.substr(0, equals), value) &&
         std::ranges::find(allowed, value) != allowed.end() &&
         whole_number(text.substr(equals + 1, wave - equals - 1), figure) &&
         whole_number(text.substr(wave + 1), percent);
}

bool read_evidence(std::string_view word, tuning& now, evidence& out) {
  if (word == "fives=1") return now.fives = true;
  if (word.starts_with("stream="))
    return whole_number(word.substr(7), out.stream) && out.stream >= least_figure &&
           out.stream <= most_figure;
  if (word.starts_with("unsettled="))
    return whole_number(word.substr(10), out.unsettled) && out.unsettled > 0;
  if (word == "pages=small") {
    out.small_pages = true;
    return true;
  }
  out.table += " " + std::string(word);
  return is_figure(word, "ahead:", distances) || is_figure(word, "tile_rows:", tiles) ||
         is_figure(word, "fives:", without_and_with);
}

// Three digits: "9.87", "31.2", "404".
std::string three_digits(double x) {
  // Not printf: in a German locale it would write "31,2", which no later start could read.
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, std::clamp(x, 0.0, most_figure),
                                 std::chars_format::fixed,
                                 x < 10    ? 2
                                 : x < 100 ? 1
                                           : 0)
                       .ptr;
  return {text, end};
}

// Times each candidate in turn, for as many rounds as the time permits.
template <std::size_t N, class Run>
timings time_each(const std::array<uint32_t, N>& candidates, const sdk::host& host,
                  uint64_t budget_ns, uint64_t cancel_token, const Run& run) {
  timings all(N);
  const uint64_t start = host.now_ns();
  run(candidates[0]);  // wakes the workers; not counted
  for (std::size_t round = 0; round < most_rounds; ++round) {
    for (std::size_t i = 0; i < N; ++i) {
      const std::size_t at = (i + round) % N;  // so that each candidate is first in some round
      const uint64_t before = host.now_ns();
      run(candidates[at]);
      all[at].push_back(host.now_ns() - before);
    }
    if (round + 1 >= least_rounds && host.now_ns() - start > budget_ns) break;
    if (host.cancelled(cancel_token)) break;
  }
  return all;
}

// The rate of each candidate: `work` (bytes, products) per nanosecond.
template <std::size_t N>
std::string table_of(const char* name, const std::array<uint32_t, N>& candidates,
                     const timings& all, uint64_t work) {
  std::string words;
  for (std::size_t i = 0; i < N; ++i) {
    const double figure =
        static_cast<double>(work) / static_cast<double>(std::max<uint64_t>(median(all[i]), 1));
    const auto percent = static_cast<int>(std::min(spread(all[i]) * 100, 99.0));
    words += std::string(" ") + name + ":" + std::to_string(candidates[i]) + "=" +
             three_digits(figure) + "~" + std::to_string(percent);
  }
  return words;
}

// The speed with five weights in a byte, relative to that without.
std::string fives_word(const timings& codes) {
  const double gain = static_cast<double>(median(codes[0])) /
                      static_cast<double>(std::max<uint64_t>(median(codes[1]), 1));
  const auto percent = static_cast<int>(std::min(spread(codes[1]) * 100, 99.0));
  return " fives:1=" + three_digits(gain) + "~" + std::to_string(percent);
}

template <std::size_t N>
std::size_t place_of(const std::array<uint32_t, N>& all, uint32_t value) {
  return static_cast<std::size_t>(std::ranges::find(all, value) - all.begin());
}

std::string percent_text(double part) {
  return std::to_string(std::lround(part * 100)) + " %";
}

// Twice the size of the last-level caches, so that no byte is still cached when it is read again; 0
// if that exceeds a quarter of the free memory.
uint64_t bytes_to_stream() {
  const uint64_t wanted = std::max(least_streamed, 2 * last_level_cache_bytes());
  const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return wanted;
  return wanted <= static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) / 4 ? wanted : 0;
}

// The weights to stream and the activations of a prompt.
struct material {
  material(uint64_t bytes, uint32_t workers, bool large_pages)
      : rooms(workers * room_bytes),
        lies(0, {large_pages}),
        weights(bytes, &lies),
        rows(bytes / row_bytes),
        q(prompt_tokens * width, int8_t{1}),
        s(prompt_tokens, 1.0f),
        y(std::max(part_rows, prompt_rows * prompt_tokens)) {}

  void multiply(const isa_form& isa, const sdk::host& host, uint64_t first_row, uint64_t n_rows,
                uint64_t tokens) {
    const float scale = 1.0f;
    const sdk::weight w{BITNET_FORMAT_TERNARY2,
                        width,
                        n_rows,
                        weights.data() + first_row * row_bytes,
                        row_bytes,
                        &scale,
                        0};
    auto share = [&](uint32_t worker, uint32_t n) noexcept {
      const uint64_t first = n_rows * worker / n, last = n_rows * (worker + 1) / n;
      if (current_tuning().fives)
        linear_ternary_fives(isa, w, w.data, q.data(), s.data(),
                             {.tokens = tokens, .first = first, .last = last, .y = y.data()});
      else
        linear_ternary(isa, w, q.data(), s.data(),
                       {.tokens = tokens, .first = first, .last = last, .y = y.data()},
                       rooms.data() + worker * room_bytes);
    };
    (void)host.parallel(host.width(), share);
  }

  sdk::memory rooms;  // one for each worker
  sdk::budget lies;   // without a bound
  sdk::memory weights;
  uint64_t rows;
  std::vector<int8_t> q;
  std::vector<float> s, y;
};

// Streams one part of the memory after the other, as a step of one token does.
class stream_of_parts {
 public:
  stream_of_parts(material& m, const isa_form& isa, const sdk::host& host)
      : m_(m), isa_(isa), host_(host) {}
  void next() {
    if (at_ + part_rows > m_.rows) at_ = 0;
    m_.multiply(isa_, host_, at_, part_rows, 1);
    at_ += part_rows;
  }

 private:
  material& m_;
  const isa_form& isa_;
  const sdk::host& host_;
  uint64_t at_ = 0;
};

// Why the figures are unreliable, or "".
std::string doubt(const timings& streams, const timings& prompts, double stream, double best) {
  const auto usual_streams = streams[place_of(distances, tuning{}.ahead)];
  const auto usual_prompts = prompts[place_of(tiles, tuning{}.tile_rows)];
  const double apart = std::max(spread(usual_streams), spread(usual_prompts));
  if (apart > most_spread)
    return "repetitions are " + percent_text(apart) + " apart: another program is computing";
  if (stream < far_below * best)
    return "the memory bandwidth was " + three_digits(stream) + " GB/s, and " + three_digits(best) +
           " GB/s at its best: another program is using it";
  return "";
}

// Records the measurements and adopts the best settings. Returns why they are unreliable, or "".
std::string take(const timings& streams, const timings& prompts, bool large_pages) {
  const tuning usual;
  uint64_t least = UINT64_MAX;
  for (const auto& one : streams) least = std::min(least, median(one));
  const double stream = static_cast<double>(part_rows * row_bytes) /
                        static_cast<double>(std::max<uint64_t>(least, 1));
  const std::scoped_lock lock(mutex);
  if (known.small_pages == large_pages) known.stream = 0;  // measured with other pages
  known.small_pages = !large_pages;
  std::string why = doubt(streams, prompts, stream, known.stream);
  known.stream = std::max(known.stream, stream);
  known.unsettled = why.empty() ? 0 : static_cast<int64_t>(std::time(nullptr));
  known.table = table_of("ahead", distances, streams, part_rows * row_bytes) +
                table_of("tile_rows", tiles, prompts, prompt_rows * width * prompt_tokens);
  const proof& asked = why.empty() ? usual_proof : strong_proof;
  ahead = distances[best_of(streams, place_of(distances, usual.ahead), asked)];
  tile_rows = tiles[best_of(prompts, place_of(tiles, usual.tile_rows), asked)];
  return why;
}

}  // namespace

tuning current_tuning() {
  return {ahead.load(std::memory_order_relaxed), tile_rows.load(std::memory_order_relaxed),
          fives.load(std::memory_order_relaxed)};
}

bool adopt_tuning(std::string_view text) {
  tuning now;
  evidence more;
  for (int place = 0; place == 0 || !text.empty(); ++place) {
    const auto blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    const bool good = place == 0   ? read(word, "ahead=", distances, now.ahead)
                      : place == 1 ? read(word, "tile_rows=", tiles, now.tile_rows)
                                   : read_evidence(word, now, more);
    if (!good || (place == 0 && blank == text.size()) || blank + 1 == text.size()) return false;
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  const std::scoped_lock lock(mutex);
  known = std::move(more);
  ahead.store(now.ahead, std::memory_order_relaxed);
  tile_rows.store(now.tile_rows, std::memory_order_relaxed);
  fives.store(now.fives, std::memory_order_relaxed);
  return true;
}

std::string describe_tuning() {
  const tuning now = current_tuning();
  std::string text =
      "ahead=" + std::to_string(now.ahead) + " tile_rows=" + std::to_string(now.tile_rows);
  const std::scoped_lock lock(mutex);
  if (now.fives) text += " fives=1";
  if (known.stream > 0) text += " stream=" + three_digits(known.stream);
  if (known.unsettled != 0) text += " unsettled=" + std::to_string(known.unsettled);
  if (known.small_pages) text += " pages=small";
  std::string_view table = known.table;
  while (text.size() + table.size() >= BITNET_TUNING_TEXT_BYTES)
    table = table.substr(0, table.rfind(' '));
  return text.append(table);
}

bool tuning_is_due(int64_t now) {
  const std::scoped_lock lock(mutex);
  return known.unsettled != 0 && (now < known.unsettled || now - known.unsettled >= rest_seconds);
}

std::string measure_tuning(const isa_form& isa, const sdk::host& host, uint64_t budget_ns,
                           uint64_t cancel_token, bool large_pages) {
  const tuning usual;
  ahead = usual.ahead;
  tile_rows = usual.tile_rows;
  fives = usual.fives;
  const uint64_t bytes = bytes_to_stream();
  if (bytes == 0) {
    const std::scoped_lock lock(mutex);
    known.unsettled = std::time(nullptr);
    known.table.clear();
    return "there is no memory for twice the size of the last-level caches";
  }
  material m(bytes, host.width(), large_pages);
  // Unwritten pages share one physical page, so each worker writes the pages that it will read.
  (void)host.parallel_for(bytes, [&](uint64_t first, uint64_t last) noexcept {
    std::fill(m.weights.data() + first, m.weights.data() + last, uint8_t{0x55});
  });
  stream_of_parts stream(m, isa, host);
  const timings streams =
      time_each(distances, host, budget_ns * 5 / 8, cancel_token, [&](uint32_t distance) {
        ahead = distance;
        stream.next();
      });
  ahead = usual.ahead;
  const timings prompts = time_each(tiles, host, budget_ns / 4, cancel_token, [&](uint32_t height) {
    tile_rows = height;
    m.multiply(isa, host, 0, prompt_rows, prompt_tokens);
  });
  tile_rows = usual.tile_rows;
  std::string why = take(streams, prompts, large_pages);
  if (!has_fives(isa)) return why;
  const timings codes =
      time_each(without_and_with, host, budget_ns / 8, cancel_token, [&](uint32_t with) {
        fives = with != 0;
        stream.next();
      });
  fives = best_of(codes, 0, why.empty() ? usual_proof : strong_proof) == 1;
  const std::scoped_lock lock(mutex);
  known.table += fives_word(codes);
  return why;
}

}  // namespace bitnet::cpu
