#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace bitnet::ceilings {
namespace {

constexpr uint32_t unit_bytes = 16, unit_words = 4;
// llvmpipe ends every loop of a thread, without a word, when they have made 65 535 passes together.
constexpr uint64_t most_passes = 60'000;
constexpr uint32_t most_repeats = most_passes / (row_units + 2);
constexpr uint32_t empty_dispatches = 256;
constexpr uint32_t small_bytes = 2 << 20;       // in some cache of every processor
constexpr uint32_t most_threads = 1 << 20;      // that leave a word of result each
constexpr uint64_t products_each_mb = 1 << 19;  // 512 of them: 10 ms at 27 G/s

uint32_t number(uint64_t i) {
  return static_cast<uint32_t>(i) * 2654435761u;
}
// Sum of number(0) ... number(n - 1).
uint32_t sum_of_numbers(uint64_t n) {
  const uint64_t pairs = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
  return static_cast<uint32_t>(pairs) * 2654435761u;
}

// The sum of the products of a vector and a row.
double sum_of_products(uint32_t vector, uint32_t row, bool floats) {
  double sum = 0;
  for (uint32_t j = 0; j < row_units * unit_words; ++j) {
    const uint32_t a = number(uint64_t{vector} * row_units * unit_words + j);
    const uint32_t b = number(uint64_t{vectors + row} * row_units * unit_words + j);
    if (floats) sum += (static_cast<int32_t>(a) >> 30) * (static_cast<int32_t>(b) >> 30);
    for (uint32_t bits = 0; bits < 32 && !floats; bits += 8)
      sum += static_cast<int8_t>(a >> bits) * static_cast<int8_t>(b >> bits);
  }
  return sum;
}

// What thread t leaves behind.
double expected_of(const dispatch& d, uint32_t t) {
  double sum = 0;
  for (uint32_t e = 0; e < tile_side(d.in); ++e)
    for (uint32_t v = 0; v < tile_side(d.in); ++v)
      for (uint32_t r = 0; r < rows; ++r) {
        const uint32_t times = d.repeats / rows + (r < d.repeats % rows ? 1 : 0);
        sum += times * sum_of_products(v, (t + r + e) % rows, d.run == kernel::dot_f32);
      }
  return sum;
}

std::string text_of(const form& f) {
  return fmt::format("way {}, {} groups of {}", f.way, f.groups, f.group);
}

// How much of the data a kernel goes over, `times` times; or how many products it makes.
struct extent {
  uint32_t units = 0, buffers = 1, times = 1;
  uint64_t products = 0;
};

// One thing to measure: a list of dispatches and how much work it is.
struct task {
  std::vector<dispatch> list;
  double work = 0;  // bytes, or products
};

class bench {
 public:
  bench(driver& on, uint32_t rounds, uint32_t megabytes)
      : on_(on), rounds_(rounds), products_(products_each_mb * megabytes) {
    // A kernel sees so much of a buffer; there are as many buffers as the megabytes need, and two.
    const uint64_t wanted = uint64_t{megabytes} * 1'000'000;
    const uint64_t most = std::min<uint64_t>(on.most_bytes(), 128 << 20);
    const uint64_t n = std::max<uint64_t>((wanted + most - 1) / most, 2);
    bytes_ = std::max<uint64_t>(wanted / n / 4096 * 4096, uint64_t{most_threads} * 4);
    buffers_ = static_cast<uint32_t>(n);
    units_ = static_cast<uint32_t>(bytes_ / unit_bytes);
    results_ = buffers_;
    floats_ = buffers_ + 1;
    on.allocate(buffers_ + 2, bytes_);
    for (uint32_t b = 0; b < buffers_; ++b) fill(b, 0, units_);
    fill(floats_, 1, (vectors + rows) * row_units);
  }

  std::vector<measured> run() {
    struct kind {
      const char *name, *unit;
      kernel run;
      std::vector<uint32_t> ways;
      extent of;
    };
    const extent everything{units_, buffers_}, few{small_bytes / unit_bytes, 1, 64};
    const std::vector<kind> kinds = {
        {"read", "GB/s", kernel::read, {0, 1}, everything},
        {"read of 2 MB", "GB/s", kernel::read, {0, 1}, few},
        {"copy", "GB/s", kernel::copy, {0, 1}, everything},
        {"copy command", "GB/s", kernel::copy_command, {0}, everything},
        {"dot int8", "Gproducts/s", kernel::dot, {0, 1}, {.products = products_}},
        {"dot f32", "Gproducts/s", kernel::dot_f32, {0, 1}, {.products = products_}},
    };
    std::vector<measured> out;
    std::vector<task> tasks;
    for (const kind& k : kinds) {
      const extent once{k.of.units, 1, 1, k.of.products / 8};
      const form best = fastest(k.run, k.ways, once);
      out.push_back({k.name, k.unit, k.run == kernel::copy_command ? "" : text_of(best), {}});
      tasks.push_back(task_of(k.run, best, k.of));
    }
    out.push_back({"empty dispatch", "us", "the next waits for it", {}});
    for (uint32_t round = 0; round < rounds_; ++round) {  // in turn: a busy second meets all
      for (size_t i = 0; i < tasks.size(); ++i)
        out[i].samples.push_back(tasks[i].work / on_.seconds(tasks[i].list) / 1e9);
      const std::vector<dispatch> empty(empty_dispatches, {kernel::nothing, {}, 0, results_, 0, 0});
      out.back().samples.push_back(on_.seconds(empty) / empty_dispatches * 1e6);
    }
    return out;
  }

  [[nodiscard]] uint64_t bytes() const { return bytes_ * buffers_; }

 private:
  void fill(uint32_t buffer, uint32_t way, uint32_t n) {
    const dispatch d{kernel::fill, {way, 8, 64}, floats_, buffer, n, 0};
    on_.seconds({&d, 1});
  }

  task task_of(kernel run, const form& f, const extent& of) const {
    task out;
    if (run == kernel::dot || run == kernel::dot_f32) {
      const uint64_t of_thread = uint64_t{row_units} * (run == kernel::dot ? 16 : 4) *
                                 tile_side(f) * tile_side(f);  // and repetition
      const uint64_t threads = uint64_t{f.group} * f.groups;
      const auto repeats = static_cast<uint32_t>(
          std::clamp<uint64_t>(of.products / (of_thread * threads), 1, most_repeats));
      const uint64_t times = std::max<uint64_t>(of.products / (of_thread * threads * repeats), 1);
      const uint32_t from = run == kernel::dot ? 0 : floats_;
      out.list.assign(times, {run, f, from, results_, 0, repeats});
      out.work = static_cast<double>(times * repeats * of_thread * threads);
      return out;
    }
    for (uint32_t i = 0; i < of.times; ++i)
      for (uint32_t b = 0; b < of.buffers; ++b) {
        const uint32_t to = run == kernel::read ? results_ : (b + 1) % buffers_;
        out.list.push_back({run, f, b, to, of.units, 0});
      }
    out.work = static_cast<double>(uint64_t{unit_bytes} * of.units * out.list.size()) *
               (run == kernel::read ? 1 : 2);
    return out;
  }

  form fastest(kernel run, const std::vector<uint32_t>& ways, const extent& of) {
    form best;
    double most = 0;
    for (const uint32_t way : ways)
      for (const uint32_t group : {1u, 8u, 64u, 256u})
        for (const uint32_t groups : {16u, 256u, 4096u}) {
          const form f{way, group, groups};
          const uint64_t threads = uint64_t{group} * groups;
          const bool streams = run == kernel::read || run == kernel::copy;
          if (!streams && group != 8 && group != 64) continue;  // compiling these takes long
          if (group > on_.most_threads() || threads > most_threads) continue;
          if (streams && (of.units / threads > most_passes || of.units / threads < 16)) continue;
          if (run == kernel::copy_command && most != 0) continue;
          const task one = task_of(run, f, of);
          // Nothing right is left from before.
          const uint32_t to = one.list.front().to;
          fill(to, 1, to == results_ ? most_threads / unit_words : units_);
          on_.seconds({one.list.data(), 1});  // compiled, and warm
          const double speed = one.work / std::min(on_.seconds(one.list), on_.seconds(one.list));
          must_be_right(one);
          if (speed > most) best = f;
          most = std::max(most, speed);
        }
    return best;
  }

  void must_be_right(const task& done) {
    const dispatch& d = done.list.back();
    const uint32_t threads = d.in.group * d.in.groups;
    if (d.run == kernel::dot || d.run == kernel::dot_f32) {
      const std::vector<uint32_t> found = on_.words(results_, threads);
      std::vector<double> of_tiles;
      for (uint32_t t = 0; t < rows; ++t) of_tiles.push_back(expected_of(d, t));
      for (uint32_t t = 0; t < threads; ++t) {
        double expected = of_tiles[t % rows], value = 0;
        if (d.run == kernel::dot) {  // modulo 2^32
          value = static_cast<double>(found[t]);
          expected = static_cast<double>(static_cast<uint32_t>(static_cast<int64_t>(expected)));
        } else {
          float f = 0;
          std::memcpy(&f, &found[t], sizeof f);
          value = static_cast<double>(f);  // exact: sums of small integers
        }
        if (value != expected)
          throw std::runtime_error(
              fmt::format("{} of thread {}: {} instead of {}", text_of(d.in), t, value, expected));
      }
      return;
    }
    if (d.run != kernel::read) {  // what was copied is summed
      const dispatch sum{kernel::read, {1, 64, 256}, d.to, results_, d.n, 0};
      on_.seconds({&sum, 1});
    }
    const std::vector<uint32_t> sums =
        on_.words(results_, d.run == kernel::read ? threads : 64 * 256);
    const uint32_t found = std::accumulate(sums.begin(), sums.end(), uint32_t{0});
    const uint32_t expected = sum_of_numbers(uint64_t{d.n} * unit_words);
    if (found != expected)
      throw std::runtime_error(
          fmt::format("{}: the sum is {} instead of {}", text_of(d.in), found, expected));
  }

  driver& on_;
  const uint32_t rounds_;
  const uint64_t products_;
  uint32_t buffers_ = 0, units_ = 0;   // buffers that are read, units of each
  uint32_t results_ = 0, floats_ = 0;  // two more buffers
  uint64_t bytes_ = 0;                 // of a buffer
};

}  // namespace

measurement measure(driver& on, uint32_t rounds, uint32_t megabytes) {
  bench all(on, rounds, megabytes);
  std::vector<measured> found = all.run();
  return {all.bytes(), std::move(found)};
}

}  // namespace bitnet::ceilings
