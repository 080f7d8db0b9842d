#include "probe/service.hpp"

#include <algorithm>
#include <ctime>

#include "base/environment.hpp"
#include "bitnet/abi/info.h"
#include "probe/fingerprint.hpp"
#include "probe/hardware.hpp"
#include "probe/probe_lock.hpp"

namespace bitnet::probe {
namespace {

// Reads some files on the first call.
cache_key key_of(subject& s) {
  if (s.fingerprint.empty())
    s.fingerprint = fingerprint(s.library, s.identity, s.inspected, s.depends_on, s.params,
                                s.device_class != BITNET_DEVICE_CPU);
  return {s.name, s.inspected.build_id, s.library, s.fingerprint};
}

}  // namespace

settings settings::usual() {
  settings out;
  out.helper = environment::probe_helper();
  out.cache = environment::probe_cache();
  out.scratch = environment::temporary_directory();
  return out;
}

service::service(settings s) : settings_(std::move(s)), prober_(settings_.most_children) {}

std::optional<outcome> service::recall(subject& s, std::vector<std::string>& notes) {
  if (settings_.fresh || settings_.cache.empty()) return std::nullopt;
  return cache(settings_.cache).recall(key_of(s), std::time(nullptr), notes);
}

service::prospect service::expect(subject& s) {
  prospect out;
  if (!settings_.cache.empty()) {
    const cache memory(settings_.cache);
    const cache_key key = key_of(s);
    uint64_t takes_ms = under_way_ms(memory.lock_of(key));
    if (const auto last = memory.last_of(key); last && !last->what.fault) {
      out.known = true;
      for (const device_report& d : last->what.devices) out.classes.push_back(d.info.device_class);
      uint64_t last_ms = 0;
      for (const uint32_t ms : last->stage_ms) last_ms += ms;
      takes_ms = std::max(takes_ms, last_ms);
    }
    out.slow = takes_ms > settings_.wait_ms;
  }
  // Without a device, a driver shows only what runs on the processor.
  if (!out.known) out.classes = {shows_devices() ? s.device_class : BITNET_DEVICE_CPU};
  return out;
}

bool service::shows_devices() {
  if (!settings_.shows_devices) settings_.shows_devices = probe::shows_devices();
  return *settings_.shows_devices;
}

ticket service::start(subject& s, bool needed) {
  job what;
  what.work = {s.name,     s.library,
               s.identity, s.params,
               0,          s.inspected.note.unloadable,
               {},         s.depends_on.late_nodes,
               {}};
  for (const auto& [name, usual] : s.depends_on.pipes)
    what.work.pipes.push_back(environment::declared_folder(name, usual));
  what.limits = deadlines_for(std::min(s.timeout_ms, settings_.most_stage_ms));
  what.environment = environment::probe_variables(s.depends_on.env);
  what.helper = settings_.helper;
  what.scratch = settings_.scratch;
  what.memory = settings_.cache;
  what.key = key_of(s);
  what.fresh = settings_.fresh;
  what.needed = needed || settings_.always_needed;
  return prober_.start(std::move(what));
}

void service::forget(subject& s) {
  if (!settings_.cache.empty()) cache(settings_.cache).forget(key_of(s));
}

}  // namespace bitnet::probe
