#include "select/device_status.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace bitnet::select {
namespace {

using nlohmann::ordered_json;

ordered_json throttling(uint32_t why) {
  ordered_json out = ordered_json::array();
  if ((why & BITNET_THROTTLED_POWER) != 0) out.push_back("power");
  if ((why & BITNET_THROTTLED_HEAT) != 0) out.push_back("heat");
  // Reasons of a later minor are reported as "other".
  if ((why & ~(BITNET_THROTTLED_POWER | BITNET_THROTTLED_HEAT)) != 0) out.push_back("other");
  return out;
}

const char* health_name(uint32_t health) {
  if (health == BITNET_HEALTH_GOOD) return "good";
  return health == BITNET_HEALTH_DEGRADED ? "degraded" : "lost";
}

void add(ordered_json& out, const bitnet_device_status& s) {
  const auto put = [&](uint32_t bit, const char* key, auto value) {
    if ((s.known & bit) != 0) out[key] = std::move(value);
  };
  put(BITNET_STATUS_MEMORY, "memory_total_bytes", s.memory_total_bytes);
  put(BITNET_STATUS_MEMORY, "memory_free_bytes", s.memory_free_bytes);
  put(BITNET_STATUS_POOL, "pool_bytes", s.pool_bytes);
  put(BITNET_STATUS_POOL, "pool_used_bytes", s.pool_used_bytes);
  put(BITNET_STATUS_POOL_USE, "pool_peak_bytes", s.pool_peak_bytes);
  put(BITNET_STATUS_POOL_USE, "pool_hits", s.pool_hits);
  put(BITNET_STATUS_POOL_USE, "pool_misses", s.pool_misses);
  put(BITNET_STATUS_UTILISATION, "utilisation_percent", s.utilisation_percent);
  put(BITNET_STATUS_TEMPERATURE, "temperature_millicelsius", s.temperature_millicelsius);
  put(BITNET_STATUS_POWER, "power_milliwatts", s.power_milliwatts);
  put(BITNET_STATUS_CLOCK, "clock_khz", s.clock_khz);
  put(BITNET_STATUS_MEMORY_CLOCK, "memory_clock_khz", s.memory_clock_khz);
  put(BITNET_STATUS_THROTTLED, "throttled", throttling(s.throttled));
  put(BITNET_STATUS_ECC, "ecc_corrected", s.ecc_corrected);
  put(BITNET_STATUS_ECC, "ecc_uncorrected", s.ecc_uncorrected);
  put(BITNET_STATUS_HEALTH, "health", health_name(s.health));
}

ordered_json members(const compute::activity& a, ordered_json report) {
  if (!a.rejected.empty()) {
    report["refused"] = a.rejected;
    return report;
  }
  const std::size_t before = report.size();
  if (a.reported) add(report, *a.reported);
  return report.size() == before ? ordered_json() : report;
}

}  // namespace

ordered_json asked_now(const compute::activity& a) {
  return members(a, {{"asked", "now"}});
}

ordered_json asked_by_probe(const compute::activity& a, int64_t age_s) {
  return members(a, {{"asked", "probe"}, {"age_s", age_s}});
}

}  // namespace bitnet::select
