#include "session/shadow.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "basic/json.hpp"
#include "process/interrupt.hpp"

namespace bitnet::host {

result<std::optional<shadow_wish>> given_shadow(const settings& set) {
  if (!set.has("shadow") || !set.given("shadow")) return std::nullopt;
  auto out = read_shadow(set.text("shadow"));
  if (!out) return std::unexpected(out.error());
  return *std::move(out);
}

result<shadow_handle> open_shadow(const invocation& in, bitnet_model* model, uint32_t n_context) {
  const auto given = given_shadow(in.set);
  if (!given) return std::unexpected(given.error());
  const std::optional<shadow_wish>& wish = *given;
  if (!wish) return shadow_handle{};
  const bitnet_session_options sequences = session_options(in.set, n_context, false, false);
  bitnet_shadow_options options{};
  bitnet_shadow_defaults(&options, sizeof options);
  options.device = wish->device.c_str();
  options.share = wish->share;
  options.op_tolerance = wish->tolerance;
  options.waiting = wish->waiting;
  options.sequences = &sequences;
  library_error err;
  bitnet_shadow* shadow = nullptr;
  const bitnet_status status = bitnet_shadow_open(model, &options, &shadow, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return shadow_handle(shadow);
}

result<void> give_shadow(bitnet_session* to, bitnet_shadow* shadow) {
  if (shadow == nullptr) return {};
  library_error err;
  const bitnet_status status = bitnet_session_set_shadow(to, shadow, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

result<void> give_shadow(bitnet_scheduler* to, bitnet_shadow* shadow) {
  if (shadow == nullptr) return {};
  library_error err;
  const bitnet_status status = bitnet_scheduler_set_shadow(to, shadow, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

result<nlohmann::json> shadow_report(bitnet_shadow* shadow) {
  std::string text;
  library_error err;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_shadow_report(shadow, out, capacity, needed, &err);
      },
      text);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return parse_json(text);
}

namespace {

constexpr std::chrono::milliseconds longest_wait{60'000}, between_looks{5};

// Waits until no row is left to compare, the shadow stops, or the time limit is over.
result<nlohmann::json> settled(bitnet_shadow* shadow) {
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + longest_wait;
  for (;;) {
    auto report = shadow_report(shadow);
    if (!report || rows_left(*report) == 0 || member(*report, "state") != "running" ||
        interrupt::requested() || clock::now() >= end)
      return report;
    std::this_thread::sleep_for(between_looks);
  }
}

}  // namespace

std::optional<nlohmann::json> end_shadow(const invocation& in, bitnet_shadow* shadow) {
  if (shadow == nullptr) return std::nullopt;
  const interrupt::scope until_found;
  auto report = settled(shadow);
  if (report && has_differed(*report) && !interrupt::requested()) {
    library_error err;
    if (bitnet_shadow_find_op(shadow, &err) != BITNET_OK)
      in.out.warning(fmt::format("the first op that differs was not found: {}", err.message));
    report = shadow_report(shadow);
  }
  if (!report) {
    in.out.warning(fmt::format("the shadow gives no report: {}", report.error().message));
    return std::nullopt;
  }
  in.out.note(shadow_line(*report));
  return *std::move(report);
}

}  // namespace bitnet::host
