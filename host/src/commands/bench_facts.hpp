#pragma once
// What all rows of `bench` about one model have in common: where it runs, and what its kernels
// read.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>

#include "commands/figures.hpp"
#include "library/engine.hpp"
#include "library/placing.hpp"
#include "measure/machine_load.hpp"

namespace bitnet::host {

struct kernel_use {
  uint64_t calls = 0, time_ns = 0, bytes = 0;
};
using kernel_uses = std::map<std::string, kernel_use>;  // by id

[[nodiscard]] kernel_uses uses_in(const nlohmann::json& session_report);
void add_difference(kernel_uses& to, const kernel_uses& before, const kernel_uses& after);
[[nodiscard]] uint64_t bytes_of(const kernel_uses& all);  // of weights

struct facts {
  bitnet_model_info model{};
  std::string file, head, tuning;
  measured_device device;
  uint64_t threads = 0;
  uint64_t max_context = 0;          // that the free memory had room for; 0: unknown
  std::string places;                // of threads that are kept somewhere
  std::string layers;                // of each device, where there are several
  std::optional<large_pages> pages;  // once all was measured
  nlohmann::json gates;              // the results of those that are set, else null
  ordered_json settings;             // llama-bench's columns of what was asked for
  ordered_json own_settings;         // ours
  ordered_json machine;              // as measure::machine_facts() has it
  measure::machine_load load;        // while it was measured
  std::string energy_source;         // "" where nothing of it can be read

  [[nodiscard]] ordered_json json() const;      // what a row begins with: llama-bench's columns
  [[nodiscard]] ordered_json own_json() const;  // what it goes on with: ours
  [[nodiscard]] std::string cells() const;      // | model | size | params | backend | threads |
  [[nodiscard]] std::string lines() const;      // below a table
};

// The model with a session for `context` tokens, which times its kernels if it is a `profile`.
struct bench_engine {
  engine all;
  facts about;
};
[[nodiscard]] result<bench_engine> open_bench(const invocation& in, const std::string& wanted,
                                              uint32_t context, bool profile);

// Options of a generation that takes the likeliest token `n_tokens` times, whatever it is.
class greedy {
 public:
  // `ahead`: what drafts, borrowed; NULL: nothing.
  explicit greedy(uint32_t n_tokens, const bitnet_speculation* ahead = nullptr);
  greedy(const greedy&) = delete;
  greedy& operator=(const greedy&) = delete;
  [[nodiscard]] const bitnet_generation& options() const { return options_; }

 private:
  bitnet_sampling sampling_{};
  bitnet_generation options_{};
};

[[nodiscard]] token_list random_tokens(std::mt19937& random, std::size_t n, uint32_t n_vocab);

}  // namespace bitnet::host
