#pragma once
// Facts that all `bench` rows of one model share: where it runs, and what its kernels read.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>

#include "commands/figures.hpp"
#include "library/placing.hpp"
#include "measure/machine_load.hpp"
#include "session/engine.hpp"

namespace bitnet::host {

struct kernel_use {
  uint64_t calls = 0, time_ns = 0, bytes = 0;
};
using kernel_uses = std::map<std::string, kernel_use>;  // by id

[[nodiscard]] kernel_uses uses_in(const nlohmann::json& session_report);
void add_difference(kernel_uses& to, const kernel_uses& before, const kernel_uses& after);
[[nodiscard]] uint64_t bytes_of(const kernel_uses& all);  // bytes of weights

struct facts {
  bitnet_model_info model{};
  std::string file, head, tuning;
  measured_device device;
  uint64_t threads = 0;
  uint64_t max_context = 0;          // tokens that the free memory has room for; 0: unknown
  std::string places;                // places of threads that are pinned
  std::string layers;                // layers of each device, if there are several
  std::optional<large_pages> pages;  // set after the measurements
  nlohmann::json gates;              // results of the gates, or null
  ordered_json settings;             // llama-bench's columns for the options
  ordered_json own_settings;         // our columns for the options
  ordered_json machine;              // from measure::machine_facts()
  measure::machine_load load;        // during the measurement
  std::string energy_source;         // "": no energy counter can be read

  [[nodiscard]] ordered_json json() const;      // first columns of a row: llama-bench's
  [[nodiscard]] ordered_json own_json() const;  // last columns of a row: ours
  [[nodiscard]] std::string cells() const;      // | model | size | params | backend | threads |
  [[nodiscard]] std::string lines() const;      // text below a table
};

// An open model with a session of `context` tokens; with `profile` it times its kernels.
struct bench_engine {
  engine all;
  facts about;
};
[[nodiscard]] result<bench_engine> open_bench(const invocation& in, const std::string& wanted,
                                              uint32_t context, bool profile);

// Generation options: takes the likeliest token `n_tokens` times and never stops early.
class greedy {
 public:
  // `ahead`: the source of drafts, borrowed; NULL: none.
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
