#pragma once
// The contents of a registry, for the files beside this one: they find backends (scan.cpp), probe
// them (asking.cpp), choose (registry.cpp) and explain (explaining.cpp).

#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plugin/manifest/discover.hpp"
#include "select/candidate.hpp"
#include "select/option.hpp"
#include "select/request.hpp"
#include "select/selection.hpp"

namespace bitnet::select {

// Why no device matches a wish.
struct no_match {
  bool rejected = false;  // a plugin broke a rule; false: it is absent
  std::string reason, hint;
  bool has_request = false;  // the hint names another request
};

struct registry::contents {
  explicit contents(probe::settings s) : probes(std::move(s)) {}

  plugin::host_services* host = nullptr;
  plugin::policy rules;
  probe::service probes;
  mutable std::mutex mutex;  // guards pending
  std::vector<probe::ticket> pending;
  std::vector<std::filesystem::path> directories;  // searched on a reload; empty: the built-in ones
  std::vector<candidate> candidates;
  std::vector<plugin::searched_directory> searched;

  // scan.cpp
  [[nodiscard]] plugin::discovery discover() const;
  void find();
  void leave_out_filtered();

  // asking.cpp
  bool collect();
  void ask_all();
  // Waits until `end` if `patient`.
  using clock = std::chrono::steady_clock;
  void ask_for(const std::vector<wish>& wishes, bool patient,
               clock::time_point end = clock::time_point::max());
  // Backends that may match a wish and have not answered.
  [[nodiscard]] std::vector<std::string> unanswered(const std::vector<wish>& wishes) const;
  void calm();

  // registry.cpp
  [[nodiscard]] std::vector<option> options(const wish& w);
  [[nodiscard]] std::vector<option> ranked();
  [[nodiscard]] bool is_usable(const std::vector<wish>& wishes);
  [[nodiscard]] std::optional<choice> take_best(const wish& w, option& taken,
                                                const std::set<std::string>& without = {},
                                                clock::time_point end = clock::time_point::max());

  // explaining.cpp
  [[nodiscard]] std::optional<failure> doubts(const std::vector<wish>& wishes);
  [[nodiscard]] no_match explain(const wish& w);
  [[nodiscard]] failure nothing_installed() const;
  [[nodiscard]] failure nothing_usable(const std::vector<wish>& wishes,
                                       const std::vector<std::string>& detected);
  void judge(const std::vector<wish>& wishes, const option* winner, bool fell_back);
  void judge_unfit(candidate& c, const std::vector<wish>& wishes);
  void judge_loser(candidate& c, const std::vector<wish>& wishes, const option& winner);
  void write(report& out);

 private:
  enum class urgency : uint8_t { none, behind, awaited };
  struct preference;
  [[nodiscard]] std::optional<preference> best_preference(const std::vector<wish>& wishes);
  [[nodiscard]] urgency urgency_of(candidate& c, const std::vector<wish>& wishes,
                                   const preference& best);
  [[nodiscard]] std::vector<probe::ticket> start_for(const std::vector<wish>& wishes);
};

}  // namespace bitnet::select
