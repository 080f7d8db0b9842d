#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "api/edge.hpp"
#include "api/objects.hpp"
#include "base/environment.hpp"
#include "base/wording.hpp"
#include "plugin/codes/text.hpp"
#include "select/device_status.hpp"

namespace {

using bitnet::say;
using bitnet::word;
using bitnet::api::guarded;
using bitnet::api::missing;

constexpr uint32_t most_threads = 1024;

std::vector<std::filesystem::path> directories(const bitnet_runtime_options& options) {
  return {options.manifest_dirs, options.manifest_dirs + options.n_manifest_dirs};
}

bitnet::select::request request_of(const bitnet_runtime_options& options) {
  bitnet::select::request r;
  if (options.device != nullptr) {
    r.text = options.device;
    r.requested_by = options.requested_by == nullptr ? "program" : options.requested_by;
  } else if (const std::string wanted = bitnet::environment::device(); !wanted.empty()) {
    r.text = wanted;
    r.requested_by = "environment BITNET_DEVICE";
  }
  r.require_first = options.require_first != 0;
  r.allow_fallback = options.allow_fallback != 0;
  return r;
}

// NAME.KEY=VALUE
bool is_backend_param(const char* text) {
  const std::string_view all = text == nullptr ? "" : text;
  const auto dot = all.find('.'), equals = all.find('=');
  return dot != 0 && dot != all.npos && equals != all.npos && dot + 1 < equals;
}

bitnet::result<bitnet::plugin::policy> policy_of(const bitnet_runtime_options& options) {
  bitnet::plugin::policy out;
  if (options.allowed_backends != nullptr) {
    auto allowed = bitnet::plugin::parse_allowed(options.allowed_backends);
    if (!allowed) return std::unexpected(allowed.error());
    out.allowed = *std::move(allowed);
  }
  if (options.trusted_keys != nullptr) out.trusted_keys = options.trusted_keys;
  out.require_signature = options.require_signature != 0;
  out.user_places = options.user_backends != 0;
  return out;
}

bitnet::probe::settings probing_of(const bitnet_runtime_options& options) {
  auto s = bitnet::probe::settings::usual();
  if (options.probe_cache != nullptr && !bitnet::environment::caches_rejected())
    s.cache = options.probe_cache;
  s.wait_ms = options.probe_wait_ms;
  s.fresh = options.probe_fresh != 0;
  return s;
}

// The cache of sums, beside that of probes.
std::filesystem::path sums_in(const bitnet_runtime_options& options) {
  const std::filesystem::path probes = probing_of(options).cache;
  return probes.empty() ? probes : probes / "file-sums";
}

// The fake backends from the environment. BITNET_FORBIDDEN.
bitnet::result<std::vector<bitnet::select::fake_backend>> fakes_of(
    const bitnet_runtime_options& options, bool strict, bitnet::api::services& services) {
  const std::string text = bitnet::environment::fake_gpus();
  auto fakes = bitnet::select::parse_fakes(text);
  if (!fakes || fakes->empty()) return fakes;
  const auto forbidden = bitnet::environment::strict_no_fake_gpu();
  if (!forbidden) return std::unexpected(forbidden.error());
  if (*forbidden)
    return bitnet::fail(BITNET_FORBIDDEN,
                        "BITNET_GPU_FAKE is set and BITNET_STRICT_NO_FAKE_GPU forbids fakes; unset "
                        "one of them");
  if (!strict && options.allow_fake != 0) return fakes;
  const std::string why =
      strict ? "in strict mode" : fmt::format("without {}", say(word::allow_fake));
  services.log(BITNET_LOG_WARN, "select", fmt::format("BITNET_GPU_FAKE does not count {}", why));
  return std::vector<bitnet::select::fake_backend>{};
}

// If the caller requested a number of threads, missing ones are an error. Otherwise there are
// fewer, and log and report say so.
bitnet::result<void> enough_threads(const bitnet_runtime_options& options,
                                    bitnet::api::services& services) {
  const auto& why = services.shortage();
  if (!why) return {};
  const std::string text = fmt::format("{} of {} threads: {}", services.parallel_width(),
                                       services.wanted_threads(), why->message);
  if (options.n_threads != 0) return std::unexpected(bitnet::failure{why->status, text, why->from});
  services.log(BITNET_LOG_WARN, "threads", text);
  return {};
}

void add_copies(nlohmann::ordered_json& backend,
                const std::vector<bitnet::reload::backend_copy>& all) {
  for (const auto& g : all) {
    if (backend["name"] != g.backend) continue;
    nlohmann::ordered_json one = {{"number", g.number}, {"state", g.state}};
    if (!g.build_id.empty()) one["build_id"] = g.build_id;
    if (!g.reason.empty()) one["reason"] = bitnet::plugin::printable(g.reason, 400);
    backend["generations"].push_back(std::move(one));
  }
}

// Devices with open models are asked for their status now; it replaces the probe's.
void add_status(nlohmann::ordered_json& backend, const std::vector<bitnet_model*>& models) {
  for (const bitnet_model* m : models) {
    const auto engine = m->engines->current();
    if (!engine) continue;
    for (const auto& part : engine->parts()) {
      auto& devices = backend["devices"];
      const uint32_t index = part->choice().device_index;
      if (backend["name"] != part->backend_name() || index >= devices.size()) continue;
      if (auto status = bitnet::select::asked_now(part->status()); !status.is_null())
        devices[index]["status"] = std::move(status);
    }
  }
}

}  // namespace

bitnet_runtime::bitnet_runtime(const bitnet_runtime_options& options,
                               const bitnet::threads::cpu_list& cpus, bitnet::plugin::policy rules)
    : services(options, cpus),
      request(request_of(options)),
      sums(sums_in(options)),
      registry(bitnet::select::registry::scan(directories(options), services, std::move(rules),
                                              probing_of(options))) {
  report.requested = request.text;
  report.requested_by = request.requested_by;
}

bitnet::result<bitnet::select::choice> bitnet_runtime::choose() {
  const std::lock_guard lock(mutex);
  if (!choice) {
    choice = registry.select(request, report);
    all_answered = false;
  }
  if (*choice) copies.serve(**choice);
  return *choice;
}

void bitnet_runtime::catch_up() {
  if (!all_answered) all_answered = registry.collect(report);
}

bitnet::result<bitnet::select::choice> bitnet_runtime::choose_other(
    const bitnet::select::request& wanted, const std::set<std::string>& without,
    std::vector<std::string>* late) {
  const std::lock_guard lock(mutex);
  auto other = registry.select_other(wanted, without);
  all_answered = false;
  if (!other) return std::unexpected(std::move(other.error()));
  copies.serve(other->taken);
  if (late != nullptr) *late = std::move(other->late);
  return std::move(other->taken);
}

const char* bitnet_version(void) {
  return BITNET_VERSION;
}

bitnet_status bitnet_build_info(char* out, uint64_t capacity, uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_build_info", [&] {
    const nlohmann::json info = {{"version", BITNET_VERSION},
                                 {"abi_major", BITNET_ABI_MAJOR},
                                 {"abi_minor", BITNET_ABI_MINOR},
#if defined(__clang__)
                                 {"compiler", "clang " __clang_version__},
#else
                                 {"compiler", "gcc " __VERSION__},
#endif
                                 {"build_type", BITNET_BUILD_TYPE}};
    return bitnet::api::give_text(
        info.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), out, capacity, needed);
  });
}

void bitnet_runtime_defaults(bitnet_runtime_options* options, uint32_t size) {
  bitnet_runtime_options ours{};
  ours.log_level = BITNET_LOG_WARN;
  ours.poll = bitnet::threads::default_poll;
  ours.probe_wait_ms = bitnet::probe::settings().wait_ms;
  bitnet::api::give_defaults(ours, options, size);
}

bitnet_status bitnet_runtime_open(const bitnet_runtime_options* options, bitnet_runtime** out,
                                  bitnet_error* err) {
  return guarded(err, "bitnet_runtime_open", [&]() -> bitnet::result<void> {
    if (out == nullptr) return missing("out");
    const auto taken = bitnet::api::take_options(options, bitnet_runtime_defaults);
    if (!taken) return std::unexpected(taken.error());
    const bitnet_runtime_options& o = *taken;
    if (o.n_threads > most_threads)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          fmt::format("{} threads are more than {}; choose a smaller {}",
                                      o.n_threads, most_threads, say(word::n_threads)));
    if (o.poll > bitnet::threads::most_poll)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          fmt::format("poll is {}; 0 to 100 expected", o.poll));
    bitnet::threads::cpu_list cpus;
    if (o.cpu_mask != nullptr) {
      auto named = bitnet::threads::read_cpu_mask(o.cpu_mask);
      if (!named) return std::unexpected(named.error());
      cpus = *std::move(named);
    }
    if (auto ok = bitnet::api::listed(o.manifest_dirs, o.n_manifest_dirs, "manifest_dirs"); !ok)
      return ok;
    for (uint32_t i = 0; i < o.n_manifest_dirs; ++i)
      if (o.manifest_dirs[i] == nullptr)
        return missing(("manifest_dirs[" + std::to_string(i) + "]").c_str());
    if (auto ok = bitnet::api::listed(o.backend_params, o.n_backend_params, "backend_params"); !ok)
      return ok;
    for (uint32_t i = 0; i < o.n_backend_params; ++i)
      if (!is_backend_param(o.backend_params[i]))
        return bitnet::fail(
            BITNET_INVALID_ARGUMENT,
            fmt::format("setting {} of backends is not of the form NAME.KEY=VALUE or *.KEY=VALUE",
                        i));
    auto rules = policy_of(o);
    if (!rules) return std::unexpected(rules.error());
    const auto strict = bitnet::environment::strict_mode();
    if (!strict) return std::unexpected(strict.error());
    auto runtime = std::make_unique<bitnet_runtime>(o, cpus, *std::move(rules));
    runtime->request.strict = *strict || o.strict_mode != 0;
    if (auto ok = enough_threads(o, runtime->services); !ok) return ok;
    auto fakes = fakes_of(o, runtime->request.strict, runtime->services);
    if (!fakes) return std::unexpected(fakes.error());
    runtime->registry.pretend(*fakes);
    *out = runtime.release();
    return {};
  });
}

void bitnet_runtime_close(bitnet_runtime* runtime) {
  if (runtime != nullptr && bitnet::api::steady::held_here(runtime->switching)) {
    runtime->services.log(BITNET_LOG_ERROR, "runtime",
                          "not closed: bitnet_runtime_close was called from a callback of a call "
                          "that uses the runtime; close it when that call has returned");
    return;
  }
  delete runtime;
}

bitnet_status bitnet_runtime_select(bitnet_runtime* runtime, bitnet_error* err) {
  return guarded(err, "bitnet_runtime_select", [&]() -> bitnet::result<void> {
    if (runtime == nullptr) return missing("runtime");
    auto chosen = runtime->choose();
    if (!chosen) return std::unexpected(chosen.error());
    return {};
  });
}

bitnet_status bitnet_runtime_probe(bitnet_runtime* runtime, bitnet_error* err) {
  return guarded(err, "bitnet_runtime_probe", [&]() -> bitnet::result<void> {
    if (runtime == nullptr) return missing("runtime");
    const std::lock_guard lock(runtime->mutex);
    runtime->registry.probe_all(runtime->report);
    runtime->all_answered = false;
    return {};
  });
}

bitnet_status bitnet_runtime_wait_probes(bitnet_runtime* runtime, uint32_t timeout_ms,
                                         bitnet_error* err) {
  return guarded(err, "bitnet_runtime_wait_probes", [&]() -> bitnet::result<void> {
    if (runtime == nullptr) return missing("runtime");
    // Without the lock, so that other calls can use the runtime meanwhile.
    if (runtime->registry.wait(std::chrono::steady_clock::now() +
                               std::chrono::milliseconds(timeout_ms)))
      return {};
    return bitnet::fail(
        BITNET_TIMEOUT,
        fmt::format("some backends have not answered after {} ms; the report names them",
                    timeout_ms));
  });
}

bitnet_status bitnet_runtime_selection_line(bitnet_runtime* runtime, char* out, uint64_t capacity,
                                            uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_runtime_selection_line", [&]() -> bitnet::result<void> {
    if (runtime == nullptr) return missing("runtime");
    const std::lock_guard lock(runtime->mutex);
    runtime->catch_up();
    return bitnet::api::give_text(runtime->report.line(), out, capacity, needed);
  });
}

bitnet_status bitnet_runtime_report(bitnet_runtime* runtime, char* out, uint64_t capacity,
                                    uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_runtime_report", [&]() -> bitnet::result<void> {
    if (runtime == nullptr) return missing("runtime");
    const auto make = [&]() -> bitnet::result<std::string> {
      const std::lock_guard lock(runtime->mutex);
      runtime->catch_up();
      auto report = nlohmann::ordered_json::parse(runtime->report.json());
      for (auto& b : report["backends"]) {
        add_copies(b, runtime->copies.all());
        add_status(b, runtime->models);
      }
      report["threads"] = runtime->services.describe_threads();
      return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    return bitnet::api::give_changing_text(
        fmt::format("runtime {}", static_cast<const void*>(runtime)), out, capacity, needed, make);
  });
}
