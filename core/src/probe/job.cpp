#include "probe/job.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "probe/json_values.hpp"

namespace bitnet::probe {
using nlohmann::json;
using plugin::code;

deadlines deadlines_for(uint32_t most_ms) {
  // Measured with drivers. The start takes long only on a machine under load.
  deadlines out = {
      {{5'000, 30'000}, {1'000, 5'000}, {5'000, 60'000}, {5'000, 60'000}, {2'000, 10'000}}};
  for (std::size_t i = 1; i < n_stages; ++i) {
    const bool is_work = i == static_cast<std::size_t>(stage::enumerate) ||
                         i == static_cast<std::size_t>(stage::self_test);
    // A manifest may give all stages less time, and drivers more. A very long time has a reason
    // that may affect any stage, such as a debugger.
    out[i].hard_ms = is_work ? most_ms : std::min(std::max(out[i].hard_ms, most_ms / 12), most_ms);
    out[i].soft_ms = std::min(out[i].soft_ms, out[i].hard_ms);
  }
  return out;
}

std::string write_job(const job& j) {
  json limits = json::array();
  for (const deadline& d : j.limits) limits.push_back({d.soft_ms, d.hard_ms});
  return dump({{"work", write_task(j.work)},
               {"limits", std::move(limits)},
               {"environment", j.environment},
               {"helper", j.helper.string()},
               {"scratch", j.scratch.string()},
               {"memory", j.memory.string()},
               {"name", j.key.name},
               {"build_id", j.key.build_id},
               {"library", j.key.library.string()},
               {"fingerprint", j.key.fingerprint},
               {"fresh", j.fresh},
               {"needed", j.needed}});
}

plugin::checked<job> read_job(std::string_view text) {
  try {
    const json from = json::parse(text);
    job out;
    auto work = read_task(from.at("work").get<std::string>());
    if (!work) return std::unexpected(std::move(work.error()));
    out.work = std::move(*work);
    for (std::size_t i = 0; i < n_stages; ++i) {
      const json& one = from.at("limits").at(i);
      out.limits[i] = {integer_of<uint32_t>(one.at(0)), integer_of<uint32_t>(one.at(1))};
    }
    out.environment = from.at("environment").get<std::vector<std::string>>();
    out.helper = from.at("helper").get<std::string>();
    out.scratch = from.at("scratch").get<std::string>();
    out.memory = from.at("memory").get<std::string>();
    out.key = {from.at("name").get<std::string>(), from.at("build_id").get<std::string>(),
               from.at("library").get<std::string>(), from.at("fingerprint").get<std::string>()};
    out.fresh = from.at("fresh").get<bool>();
    out.needed = from.at("needed").get<bool>();
    return out;
  } catch (const std::exception& e) {
    return plugin::reject(code::probe_helper,
                          fmt::format("the helper was given no job of ours: {}", e.what()));
  }
}

std::string write_answer(const outcome& f) {
  return dump({{"outcome", write_outcome(f)},
               {"cached", f.cached},
               {"quarantined", f.quarantined},
               {"age_s", f.age_s},
               {"retry_in_s", f.retry_in_s}});
}

plugin::checked<outcome> read_answer(std::string_view text) {
  try {
    const json from = json::parse(text);
    auto out = read_outcome(from.at("outcome").get<std::string>());
    if (!out) return out;
    out->cached = from.at("cached").get<bool>();
    out->quarantined = from.at("quarantined").get<bool>();
    out->age_s = integer_of<int64_t>(from.at("age_s"));
    out->retry_in_s = integer_of<int64_t>(from.at("retry_in_s"));
    return out;
  } catch (const std::exception& e) {
    return plugin::reject(code::probe_message,
                          fmt::format("the answer of its probe makes no sense: {}", e.what()));
  }
}

}  // namespace bitnet::probe
