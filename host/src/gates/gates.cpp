#include "gates/gates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gates/peak_memory.hpp"

namespace bitnet::host {
namespace {

struct gate_kind {
  std::string_view name, unit, bound;
  int exit_code;
};
// Names of the options.
constexpr std::array gate_kinds{
    gate_kind{"min-tps", "tokens/s", "at least", exit_code::too_slow},
    gate_kind{"max-wall-ms", "ms", "at most", exit_code::too_slow},
    gate_kind{"max-rss-mb", "MB", "at most", exit_code::too_large},
    gate_kind{"check-determinism", "runs", "all of", exit_code::not_the_same},
};
enum : uint8_t { tps, wall, rss, determinism };

const gate_kind& kind_of(std::string_view name) {
  return *std::ranges::find(gate_kinds, name, &gate_kind::name);
}

std::optional<double> given_real(const settings& set, std::string_view name) {
  return set.given(name) ? std::optional(set.real(name)) : std::nullopt;
}

gate_result at_most(const gate_kind& kind, double limit, std::optional<double> measured) {
  return {std::string(kind.name), limit, measured, measured && *measured <= limit, kind.unit};
}

gate_result at_least(const gate_kind& kind, double limit, std::optional<double> measured) {
  return {std::string(kind.name), limit, measured, measured && *measured >= limit, kind.unit};
}

}  // namespace

gates::gates(const settings& set)
    : min_tps_(given_real(set, "min-tps")),
      max_wall_ms_(given_real(set, "max-wall-ms")),
      max_rss_mb_(given_real(set, "max-rss-mb")) {
  if (set.has("check-determinism") && set.given("check-determinism"))
    if (const int64_t n = set.integer("check-determinism"); n != 0) repeats_ = n;
}

bool gates::any() const {
  return min_tps_ || max_wall_ms_ || max_rss_mb_ || repeats_;
}

void gates::take_speed(double tokens_per_second) {
  if (!std::isfinite(tokens_per_second) || tokens_per_second <= 0) return;
  tokens_per_second_ = std::min(tokens_per_second_.value_or(tokens_per_second), tokens_per_second);
}

void gates::take_repeats(int64_t n_same) {
  n_same_ = std::min(n_same_.value_or(n_same), n_same);
}

void gates::end_of_work() {
  if (wall_ms_) return;
  wall_ms_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun_).count();
  if (const auto bytes = peak_memory()) {
    const double mark = static_cast<double>(*bytes) / 1e6;
    peak_mb_ = mark > mark_behind_mb_ ? mark : peak_before_mb_;
  }
}

gates::left_out::left_out(gates& of) : of_(of) {
  const auto bytes = peak_memory();
  const double mark = bytes ? static_cast<double>(*bytes) / 1e6 : 0;
  if (mark > of_.mark_behind_mb_) of_.peak_before_mb_ = mark;
}

gates::left_out::~left_out() {
  of_.begun_ += std::chrono::steady_clock::now() - begun_;
  if (const auto bytes = peak_memory()) of_.mark_behind_mb_ = static_cast<double>(*bytes) / 1e6;
}

std::vector<gate_result> gates::results() const {
  std::vector<gate_result> out;
  if (min_tps_) out.push_back(at_least(gate_kinds[tps], *min_tps_, tokens_per_second_));
  if (max_wall_ms_) out.push_back(at_most(gate_kinds[wall], *max_wall_ms_, wall_ms_));
  if (max_rss_mb_) out.push_back(at_most(gate_kinds[rss], *max_rss_mb_, peak_mb_));
  if (repeats_)
    out.push_back(at_least(gate_kinds[determinism], static_cast<double>(*repeats_), n_same_));
  return out;
}

nlohmann::json gates_json(const std::vector<gate_result>& all) {
  nlohmann::json out = nlohmann::json::array();
  for (const gate_result& one : all)
    out.push_back({{"name", one.name},
                   {"limit", one.limit},
                   {"measured", one.measured ? nlohmann::json(*one.measured) : nlohmann::json()},
                   {"passed", one.passed}});
  return out;
}

std::string gate_line(const gate_result& one) {
  const std::string found =
      one.measured ? fmt::format("{:.6g} {}", *one.measured, one.unit) : "nothing was measured";
  return fmt::format("gate {}: {}, {} {:.6g}: {}", one.name, found, kind_of(one.name).bound,
                     one.limit, one.passed ? "passed" : "failed");
}

int gates_code(const std::vector<gate_result>& all) {
  int out = exit_code::ok;
  for (const gate_result& one : all)
    if (!one.passed) out = std::max(out, kind_of(one.name).exit_code);
  return out;
}

}  // namespace bitnet::host
