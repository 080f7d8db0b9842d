#pragma once
// Limits that what a command measured must keep to, as exit codes for scripts. The options are
// --min-tps, --max-wall-ms, --max-rss-mb and --check-determinism.

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"
#include "settings/settings.hpp"

namespace bitnet::host {

struct gate_result {
  std::string name;  // of its option, without dashes
  double limit = 0;
  std::optional<double> measured;  // nothing: there was nothing to measure
  bool passed = false;             // false, too, where nothing was measured
  std::string_view unit;           // "tokens/s", "ms", "MB" (10^6 bytes), "runs"
};

// The gates of one command. One thread.
class gates {
 public:
  // Those that are set. The time that a gate bounds begins here.
  explicit gates(const settings& set);

  [[nodiscard]] bool any() const;
  [[nodiscard]] int64_t repeats() const { return repeats_.value_or(0); }

  // Of several, the lowest counts. A speed that is no number above 0 is none.
  void take_speed(double tokens_per_second);
  void take_repeats(int64_t n_same);  // of repeats()
  // The work that is bounded ends: its time, and the most memory so far. The first call counts.
  void end_of_work();

  // While it lives, what runs is no part of the work: runs that a gate adds. Its time is left out,
  // and so is its memory, but where later work needs more than it did.
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
  // In MB (10^6 bytes): the most memory of work before left_out, and the highest mark that is left
  // behind it. The kernel's mark never falls.
  double peak_before_mb_ = 0, mark_behind_mb_ = 0;
};

// [{"name", "limit", "measured", "passed"}]; "measured" is null where nothing was.
[[nodiscard]] nlohmann::json gates_json(const std::vector<gate_result>& all);
// "gate min-tps: 31.2 tokens/s, at least 20: passed"
[[nodiscard]] std::string gate_line(const gate_result& one);
// exit_code::ok where all passed. Of several that did not, the highest code.
[[nodiscard]] int gates_code(const std::vector<gate_result>& all);

}  // namespace bitnet::host
