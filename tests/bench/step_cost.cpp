// What a step of many sequences costs: each gives one token and wants its largest logits.
//
//   build/release/tests/bench/bench_steps [--option VALUE]... PLUGIN [OTHER PLUGIN...]
//
// In turn with each plugin, on random weights in the shape of BitNet b1.58 2B-4T; the first plugin
// is what the others are compared with. Threads are made for each step, a part in a thousand of it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "host.hpp"
#include "runner.hpp"

namespace {

using namespace bitnet;  // NOLINT(google-build-using-namespace): the subject
using clock_type = std::chrono::steady_clock;

constexpr uint32_t vocabulary = 128256;

struct wanted {
  std::map<std::string, uint32_t> numbers = {
      {"--sequences", 16}, {"--outputs", 16}, {"--threads", 2}, {"--rounds", 8},
      {"--steps", 4},      {"--layers", 30},  {"--top", 1}};
  std::string isa;
  std::vector<std::string> plugins;

  uint32_t operator[](const char* name) const { return numbers.at(name); }
};

wanted wanted_of(int argc, char** argv) {
  wanted out;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (!name.starts_with("--")) {
      out.plugins.push_back(name);
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(name + " needs a value");
    const std::string value = argv[++i];
    if (name == "--isa") {
      out.isa = value;
      continue;
    }
    const auto at = out.numbers.find(name);
    char* end = nullptr;
    const uint64_t number = std::strtoul(value.c_str(), &end, 10);
    if (at == out.numbers.end() || value.empty() || *end != '\0' || number > 100000)
      throw std::runtime_error(name + " " + value + ": no such option, or no number up to 100000");
    at->second = static_cast<uint32_t>(number);
  }
  for (const char* name : {"--sequences", "--threads", "--rounds", "--steps", "--layers"})
    if (out[name] == 0) throw std::runtime_error(std::string(name) + " is 1 at least");
  if (out.plugins.empty()) throw std::runtime_error("the file of a plugin is expected");
  if (out["--outputs"] > out["--sequences"])
    throw std::runtime_error("--outputs is at most --sequences");
  return out;
}

// A plugin that has the model, and sequences that go on.
class stepper {
 public:
  stepper(const std::string& path, const conformance::model& m, const wanted& w)
      : wanted_(w), host_(w["--threads"]), plugin_(path, host_, w.isa) {
    parity::runner_options options;
    options.max_sequences = options.max_tokens = options.max_outputs = w["--sequences"];
    options.block_tokens = 32;
    const uint32_t tokens = (w["--rounds"] + 1) * w["--steps"];
    options.max_blocks = tokens / options.block_tokens + 1;
    options.n_blocks = options.max_blocks * options.max_sequences;
    while (options.n_blocks % 7 == 0) ++options.n_blocks;  // blocks are spread by sevens
    options.flags = 0;
    options.alias = true;
    runner_ = std::make_unique<parity::runner>(plugin_.table, m, options);
    seconds_of_steps();
  }

  double tokens_per_second() {
    return wanted_["--steps"] * wanted_["--sequences"] / seconds_of_steps();
  }

 private:
  double seconds_of_steps() {
    std::vector<parity::token_in> in;
    for (uint32_t s = 0; s < wanted_["--sequences"]; ++s)
      in.push_back({static_cast<int32_t>((97 * s + 5) % vocabulary), static_cast<int32_t>(s)});
    const auto start = clock_type::now();
    for (uint32_t i = 0; i < wanted_["--steps"]; ++i) {
      bitnet_step step = runner_->prepare(in);
      step.n_outputs = wanted_["--outputs"];
      step.top_logits = wanted_["--top"];
      if (const conformance::outcome o = runner_->submit(step); o.status != BITNET_OK)
        throw conformance::call_failed(o);
    }
    return std::chrono::duration<double>(clock_type::now() - start).count();
  }

  const wanted& wanted_;
  parity::tiny_host host_;
  parity::plugin plugin_;
  std::unique_ptr<parity::runner> runner_;
};

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return (of[of.size() / 2] + of[(of.size() - 1) / 2]) / 2;
}

void measure(const wanted& w) {
  const parity::tiny_model m({.layers = w["--layers"],
                              .vocab = vocabulary,
                              .embedding = 2560,
                              .heads = 20,
                              .kv_heads = 5,
                              .head_dim = 128,
                              .ff = 6912});
  std::vector<std::unique_ptr<stepper>> all;
  for (const std::string& path : w.plugins) all.push_back(std::make_unique<stepper>(path, m, w));
  std::vector<std::vector<double>> speeds(all.size()), ratios(all.size());
  for (uint32_t round = 0; round < w["--rounds"]; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t p = round % 2 == 0 ? i : all.size() - 1 - i;  // each begins, in turn
      speeds[p].push_back(all[p]->tokens_per_second());
    }
    for (std::size_t p = 0; p < all.size(); ++p)
      ratios[p].push_back(speeds[p].back() / speeds[0].back());
  }
  for (std::size_t p = 0; p < all.size(); ++p) {
    const auto [low, high] = std::minmax_element(ratios[p].begin(), ratios[p].end());
    std::printf("%s: %.1f tokens/s, %.2f times the first (%.2f to %.2f)\n", w.plugins[p].c_str(),
                median(speeds[p]), median(ratios[p]), *low, *high);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    measure(wanted_of(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_steps: %s\n", e.what());
    return 2;
  }
  return 0;
}
