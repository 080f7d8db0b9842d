#pragma once
// Limits on a command's measurements, reported as exit codes for scripts. The options are
// --min-tps, --max-wall-ms, --max-rss-mb and --check-determinism.

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

struct gate_result {
  std::string name;  // the option's name without dashes
  double limit = 0;
  std::optional<double> measured;  // nothing: not measured
  bool passed = false;             // false also if nothing was measured
  std::string_view unit;           // "tokens/s", "ms", "MB" (10^6 bytes), "runs"
};

// The gates of one command. Not for several threads.
class gates {
 public:
  // Reads the gates from the options. The wall time that a gate limits begins here.
  explicit gates(const settings& set);

  [[nodiscard]] bool any() const;
  [[nodiscard]] int64_t repeats() const { return repeats_.value_or(0); }

  // The lowest speed of all calls counts. A value that is not above 0 is ignored.
  void take_speed(double tokens_per_second);
  void take_repeats(int64_t n_same);  // out of repeats()
  // Ends the measured work: takes its time and its peak memory. Only the first call counts.
  void end_of_work();

  // While it lives, nothing that runs counts as work. It is for runs that a gate adds. Their time
  // is subtracted. So is their memory, unless later work exceeds their peak.
  class left_out {
   public:
    explicit left_out(gates& of);
    ~left_out();
    left_out(const left_out&) = delete;
    left_out& operator=(const left_out&) = delete;

   private:
    gates& of_;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  };

  [[nodiscard]] std::vector<gate_result> results() const;

 private:
  std::optional<double> min_tps_, max_wall_ms_, max_rss_mb_;
  std::optional<int64_t> repeats_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<double> tokens_per_second_, wall_ms_, peak_mb_;
  std::optional<int64_t> n_same_;
  // MB (10^6 bytes): peak of the work before left_out, and peak at the end of left_out. Both are
  // needed since the kernel's high-water mark never falls.
  double peak_before_mb_ = 0, mark_behind_mb_ = 0;
};

// [{"name", "limit", "measured", "passed"}]; "measured" is null if nothing was measured.
[[nodiscard]] nlohmann::json gates_json(const std::vector<gate_result>& all);
// "gate min-tps: 31.2 tokens/s, at least 20: passed"
[[nodiscard]] std::string gate_line(const gate_result& one);
// Returns exit_code::ok if all passed, else the highest code of those that failed.
[[nodiscard]] int gates_code(const std::vector<gate_result>& all);

}  // namespace bitnet::host
