#pragma once
// The outcome of probing a plugin, from its child or from the cache.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "probe/devices.hpp"

namespace bitnet::probe {

// The stages of a probe; each is reported before it begins.
enum class stage : uint8_t { start, open, enumerate, self_test, close };
constexpr std::size_t n_stages = 5;

[[nodiscard]] std::string stage_name(stage s);  // "S2 enumerate"

// The child's report. It is not trusted: selection loads the plugin and compares.
struct facts {
  std::optional<plugin::defect> fault;
  std::string version;  // of the plugin
  uint32_t life_flags = 0;
  std::vector<device_report> devices;
  std::vector<std::string> disabled;       // ids of kernels that failed the self-test
  std::vector<std::string> wrong_results;  // one per id in `disabled`: "... row 0 is 136, not -136"
  bool again = false;                      // one of them ended this child: start another without it
  std::string self_test;                   // summary of the tests
  uint64_t peak_bytes = 0;                 // the child's peak memory
  bool unloads = false;                    // the child unloaded it on trial without residue
  std::string sandbox;                     // the child's restrictions, as text
  std::vector<std::string> remarks;        // noteworthy, but no fault
};

// Most notes of an outcome. Each of eight children has at most 16 remarks and 8 other notes.
constexpr std::size_t most_notes = 256;

struct outcome {
  facts what;
  stage reached = stage::start;               // the last stage that began
  std::array<uint32_t, n_stages> stage_ms{};  // of all children of the probe, as what follows
  std::string output;                         // the end of what they printed
  uint64_t output_bytes = 0;
  std::vector<std::string> notes;  // noteworthy, but no fault; at most most_notes

  // Set by the cache; 0 and false for a new probe.
  bool cached = false, quarantined = false;
  int64_t age_s = 0, retry_in_s = 0;
};

// JSON; the parser checks everything: BN-P-MESSAGE. tests/fuzz/probe/outcome_fuzz.cpp.
[[nodiscard]] std::string write_facts(const facts& f);
[[nodiscard]] plugin::checked<facts> read_facts(std::string_view text);
[[nodiscard]] std::string write_outcome(const outcome& f);  // without the cache members
[[nodiscard]] plugin::checked<outcome> read_outcome(std::string_view text);

// The text for kernel `index` of `disabled`: "it failed the self-test: ...".
[[nodiscard]] std::string why_disabled(const facts& f, std::size_t index);

// Differences between two answers of a plugin, as texts: version, devices by uuid, kernels by id.
// Values that change while a machine runs (free memory, clocks) are ignored.
[[nodiscard]] std::vector<std::string> differences(const std::string& version_a,
                                                   const std::vector<device_report>& a,
                                                   const std::string& version_b,
                                                   const std::vector<device_report>& b);

}  // namespace bitnet::probe
