// What choosing a token costs, from a row of logits and from the largest as a device lists them.
//
//   build/release/tests/bench/bench_sampling [N_VOCAB [LISTED]]
//
// Rows have N_VOCAB (128256) logits, LISTED (300) of which are numbers and the rest -infinity, as a
// two-stage head leaves them. The least of 200 turns, in microseconds.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "sampling/sampler.hpp"

namespace {

using namespace bitnet;  // NOLINT(google-build-using-namespace): the subject
using clock_type = std::chrono::steady_clock;

template <class Work>
double least_us(const Work& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 200; ++turn) {
    const auto start = clock_type::now();
    work();
    least = std::min(least,
                     std::chrono::duration<double, std::micro>(clock_type::now() - start).count());
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  const auto n_vocab = static_cast<std::size_t>(argc > 1 ? std::atol(argv[1]) : 128256);
  const auto n_listed = static_cast<std::size_t>(argc > 2 ? std::atol(argv[2]) : 300);
  std::mt19937 random(1);
  std::vector<float> row(n_vocab, -std::numeric_limits<float>::infinity()), logits;
  std::vector<int32_t> ids;
  while (ids.size() < std::min(n_listed, n_vocab)) {
    const std::size_t id = random() % n_vocab;
    if (row[id] > -1) continue;
    row[id] = static_cast<float>(random() % 1000) / 100;
    ids.push_back(static_cast<int32_t>(id));
    logits.push_back(row[id]);
  }
  for (const float temperature : {0.0F, 0.8F}) {
    sampling::parameters p;
    p.temperature = temperature;
    auto by_row = sampling::sampler::make(p, static_cast<uint32_t>(n_vocab));
    auto by_list = sampling::sampler::make(p, static_cast<uint32_t>(n_vocab));
    if (!by_row || !by_list) {
      fmt::print(stderr, "bench_sampling: a vocabulary of 1 to 2147483647 tokens is expected\n");
      return 2;
    }
    int32_t one = 0, other = 0;
    const double of_row = least_us([&] { one = by_row->sample(row).value_or(-1); });
    const double of_list =
        least_us([&] { other = by_list->sample_listed(ids, logits).value_or(-2); });
    fmt::print("temperature {}: from a row {:.1f} us, from a list {:.1f} us{}\n", temperature,
               of_row, of_list, one == other ? "" : ", and not the same token");
  }
}
