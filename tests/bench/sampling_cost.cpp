// What choosing a token costs, from a row of logits and from the largest as a device lists them.
//
//   build/release/tests/bench/bench_sampling [N_VOCAB [LISTED]]
//
// Rows have N_VOCAB (128256) logits, LISTED (300) of which are numbers and the rest -infinity, as a
// two-stage head leaves them. The least of 200 turns, in microseconds. Then what each further stage
// takes, of a row in which every logit is a number.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
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

void print_stages(std::size_t n_vocab) {
  std::mt19937 random(2);
  std::normal_distribution<float> logits(0, 3);
  std::vector<float> row(n_vocab);
  for (float& l : row) l = logits(random);
  const struct {
    const char* what;
    std::function<void(sampling::parameters&)> change;
    int history = 0;  // tokens that are all the same: the most that DRY has to look at
  } rows[] = {
      {"the defaults", [](auto&) {}},
      {"top-k off", [](auto& p) { p.top_k = 0; }},
      {"top-n-sigma", [](auto& p) { p.top_n_sigma = 1; }},
      {"typical", [](auto& p) { p.typical_p = 0.9F; }},
      {"typical, top-k off", [](auto& p) { p.typical_p = 0.9F, p.top_k = 0; }},
      {"XTC", [](auto& p) { p.xtc_probability = 1; }},
      {"dynamic temperature", [](auto& p) { p.dynatemp_range = 0.5F; }},
      {"mirostat 1", [](auto& p) { p.mirostat = 1; }},
      {"mirostat 2", [](auto& p) { p.mirostat = 2; }},
      {"DRY of 64 tokens", [](auto& p) { p.dry_multiplier = 1; }, 1000},
      {"DRY of 4096", [](auto& p) { p.dry_multiplier = 1, p.dry_penalty_last_n = -1; }, 4096},
      {"DRY of 131072", [](auto& p) { p.dry_multiplier = 1, p.dry_penalty_last_n = -1; }, 131072}};
  for (const auto& r : rows) {
    sampling::parameters p;
    r.change(p);
    auto sampler = sampling::sampler::make(p, static_cast<uint32_t>(n_vocab));
    if (!sampler) continue;
    for (int i = 0; i < r.history; ++i) sampler->accept(0);
    const double took = least_us([&] {
      sampler->accept(0);
      static_cast<void>(sampler->sample(row));
    });
    fmt::print("{}: {:.1f} us\n", r.what, took);
  }
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
  print_stages(n_vocab);
}
