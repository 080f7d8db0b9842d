#include "probe/service.hpp"

#include <ctime>

#include "base/environment.hpp"
#include "probe/fingerprint.hpp"

namespace bitnet::probe {
namespace {

cache_key key_of(const subject& s) {
  return {s.name, s.inspected.build_id, s.library,
          fingerprint(s.library, s.identity, s.inspected, environment::probe_variables(s.variables),
                      s.params, s.device_class != BITNET_DEVICE_CPU)};
}

}  // namespace

settings settings::usual() {
  settings out;
  out.helper = environment::probe_helper();
  out.cache = environment::probe_cache();
  out.scratch = environment::temporary_directory();
  return out;
}

service::service(settings s)
    : settings_(std::move(s)),
      prober_(settings_.helper, settings_.scratch, settings_.most_children) {}

std::optional<finding> service::recall(const subject& s, std::vector<std::string>& notes) {
  if (settings_.fresh || settings_.cache.empty()) return std::nullopt;
  return cache(settings_.cache).recall(key_of(s), std::time(nullptr), notes);
}

ticket service::start(const subject& s) {
  job what;
  what.work = {s.name, s.library, s.identity, s.params, 0, s.inspected.note.unloadable, {}};
  what.limits = deadlines_for(std::min(s.timeout_ms, settings_.most_stage_ms));
  what.environment = environment::probe_variables(s.variables);
  return prober_.start(std::move(what));
}

void service::remember(const subject& s, finding& f) {
  if (settings_.cache.empty()) return;
  cache(settings_.cache).remember(key_of(s), std::time(nullptr), settings_.fresh, f);
}

void service::forget(const subject& s) {
  if (!settings_.cache.empty()) cache(settings_.cache).forget(key_of(s));
}

}  // namespace bitnet::probe
