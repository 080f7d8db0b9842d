#pragma once
// What probing one plugin brought: the words of its child, or those that the cache kept.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "probe/devices.hpp"

namespace bitnet::probe {

// The parts of a probe, each announced before it begins.
enum class stage : uint8_t { start, open, enumerate, self_test, close };
constexpr std::size_t n_stages = 5;

[[nodiscard]] std::string stage_name(stage s);  // "S2 enumerate"

// Everything that the child reports. None of it is trusted: selection loads the plugin and
// compares.
struct facts {
  std::optional<plugin::defect> fault;
  std::string version;  // of the plugin
  uint32_t life_flags = 0;
  std::vector<device_report> devices;
  std::vector<std::string> disabled;  // ids of kernels that gave a wrong answer in the self-test
  std::vector<std::string> wrong_results;  // of each of those: what, "... row 0 is 136, not -136"
  std::string self_test;                   // what was tested, in words
  uint64_t peak_bytes = 0;                 // of the child's memory
  bool unloads = false;              // the child unloaded it on trial, and nothing of it was left
  std::string sandbox;               // what the child was kept from, in words
  std::vector<std::string> remarks;  // remarkable, and no fault
};

struct outcome {
  facts what;
  stage reached = stage::start;  // the last one that began
  std::array<uint32_t, n_stages> stage_ms{};
  std::string output;  // the end of what the child printed
  uint64_t output_bytes = 0;
  std::vector<std::string> notes;  // remarkable, and no fault

  // Of the cache; 0 and false for what was probed just now.
  bool cached = false, quarantined = false;
  int64_t age_s = 0, retry_in_s = 0;
};

// JSON; the parser checks everything: BN-P-MESSAGE. tests/fuzz/probe/outcome_fuzz.cpp.
[[nodiscard]] std::string write_facts(const facts& f);
[[nodiscard]] plugin::checked<facts> read_facts(std::string_view text);
[[nodiscard]] std::string write_outcome(const outcome& f);  // all but what is of the cache
[[nodiscard]] plugin::checked<outcome> read_outcome(std::string_view text);

// "it gave a wrong result in the self-test: ...", of the kernel at that place of `disabled`.
[[nodiscard]] std::string why_disabled(const facts& f, std::size_t index);

// Where two answers of one plugin differ, in words: version, devices by uuid, kernels by id. Empty
// if they agree. What changes while a machine runs (free memory, clocks) is not looked at.
[[nodiscard]] std::vector<std::string> differences(const std::string& version_a,
                                                   const std::vector<device_report>& a,
                                                   const std::string& version_b,
                                                   const std::vector<device_report>& b);

}  // namespace bitnet::probe
