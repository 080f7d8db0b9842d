#include "reload/reload.hpp"

#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "api/edge.hpp"
#include "api/objects.hpp"
#include "api/preference.hpp"

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;

bitnet::result<bitnet::reload::options> options_of(const bitnet_reload_options& o) {
  bitnet::reload::options out;
  switch (o.policy) {
    case BITNET_RELOAD_FINISH:
      break;
    case BITNET_RELOAD_MIGRATE:
      out.sessions = bitnet::engine::moving::migrate;
      break;
    case BITNET_RELOAD_RECOMPUTE:
      out.sessions = bitnet::engine::moving::recompute;
      break;
    default:
      return bitnet::api::of_no_kind("policy", "BITNET_RELOAD_FINISH, _MIGRATE or _RECOMPUTE",
                                     o.policy);
  }
  out.force = o.force != 0;
  out.accept_stale = o.accept_stale != 0;
  if (o.most_old_copies != 0) out.most_old_copies = o.most_old_copies;
  if (o.prompt_tokens != 0) out.prompt = o.prompt_tokens;
  if (o.tolerance < 0 || o.tolerance > 1)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        "tolerance is a part of the largest logit: 0 to 1 "
                        "expected, 0 for the default");
  if (o.tolerance != 0) out.tolerance = double{o.tolerance};
  out.canary.rows = o.canary_rows;
  if (o.canary_wait_ms != 0) out.canary.patience = std::chrono::milliseconds(o.canary_wait_ms);
  return out;
}

std::string json_of(const bitnet::reload::outcome& done) {
  nlohmann::ordered_json out = {{"backend", done.backend}, {"changed", done.changed}};
  if (!done.reason.empty()) out["reason"] = done.reason;
  if (!done.build_id.empty()) out["build_id"] = done.build_id;
  if (!done.former_build_id.empty()) out["former_build_id"] = done.former_build_id;
  if (!done.version.empty()) out["version"] = done.version;
  if (!done.former_version.empty()) out["former_version"] = done.former_version;
  if (done.changed) {
    if (done.copy_number != 0) out["generation"] = done.copy_number;
    out["models"] = done.models;
    out["sessions"] = {{"moving", done.sessions.offered}, {"staying", done.sessions.staying}};
    if (done.verified.compared)
      out["compared"] = {{"tokens", done.verified.tokens},
                         {"difference", done.verified.difference}};
    if (done.watched.rows != 0)
      out["canary"] = {{"rows", done.watched.rows},
                       {"same_bytes", done.watched.same_bytes},
                       {"same_top", done.watched.same_top},
                       {"max_kl", done.watched.max_kl},
                       {"difference", done.watched.difference}};
  }
  if (!done.stale.empty()) out["stale_libraries"] = done.stale;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The engine on the session's next device; a device that was lost is permitted again.
bitnet::result<void> prefer(bitnet_session& s, const char* list) {
  bitnet_runtime& runtime = *s.model->runtime;
  const bitnet::api::steady steady(runtime.switching);
  auto wish = bitnet::api::find_preference(runtime, s.session->owner().choice(), list,
                                           "bitnet_session_set_preference", "session");
  if (!wish) return std::unexpected(std::move(wish.error()));
  if (!wish->stays) {
    auto engine = s.model->engines->on(wish->to);
    if (!engine) return std::unexpected(engine.error());
    if (engine->get() != &s.session->owner())
      if (auto ok = s.session->move(*engine, bitnet::engine::moving::migrate,
                                    fmt::format("asked for {}", wish->wanted.text));
          !ok)
        return ok;
    runtime.lost.works_again(wish->to.device_name());
  }
  s.request = std::move(wish->wanted);
  return {};
}

}  // namespace

bitnet::result<bitnet::engine::engine_ptr> bitnet_runtime::find_replacement(
    bitnet_model& model, const bitnet::select::request& wanted,
    const bitnet::engine::engine_ptr& from, const bitnet::failure& why) {
  const bitnet::api::steady steady(switching);
  copies.lose(*from->failed_part().choice().backend, why.message);
  return lost.find_replacement(
      *model.engines, from, why, wanted, request,
      {.choose = [&](const auto& wish, const auto& without) { return choose_other(wish, without); },
       .settle =
           [&](const bitnet::select::choice& next) {
             const std::lock_guard lock(mutex);
             choice = next;
           },
       .log = [&](uint32_t level,
                  const std::string& text) { services.log(level, "session", text); }});
}

void bitnet_reload_defaults(bitnet_reload_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_backend_reload(bitnet_runtime* runtime, const char* backend,
                                    const bitnet_reload_options* options, bitnet_error* err) {
  return guarded(err, "bitnet_backend_reload", [&]() -> bitnet::result<void> {
    if (runtime == nullptr || backend == nullptr) return missing("runtime or backend");
    const auto taken = bitnet::api::take_options(options, bitnet_reload_defaults);
    if (!taken) return std::unexpected(taken.error());
    const bitnet_reload_options& o = *taken;
    auto how = options_of(o);
    if (!how) return std::unexpected(how.error());
    bitnet::api::services& services = runtime->services;
    how->canary.threads = services.parallel_width();
    how->canary.cpus = services.usable_cpus();
    how->canary.make_flag = [&services] { return services.make_cancel_flag(); };
    if (bitnet::api::steady::held_here(runtime->switching))
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          "called from a progress callback, whose call holds the backends as they "
                          "are; note what to do, and do it when that call has returned");
    std::unique_lock alone(runtime->switching);
    std::optional<bitnet::select::choice> selected;
    bitnet::reload::reload_scope scope{
        runtime->registry,
        runtime->report,
        runtime->mutex,
        selected,
        runtime->copies,
        {},
        [&](const std::string& text) { runtime->services.log(BITNET_LOG_WARN, "reload", text); }};
    {
      const std::lock_guard lock(runtime->mutex);
      if (runtime->choice && *runtime->choice) selected = **runtime->choice;
      for (bitnet_model* m : runtime->models) scope.models.push_back(m->engines.get());
    }
    auto done = bitnet::reload::run(scope, backend, *how);
    if (!done) {
      runtime->services.log(BITNET_LOG_WARN, "reload", done.error().message);
      return std::unexpected(std::move(done.error()));
    }
    if (done->changed) {
      const std::lock_guard lock(runtime->mutex);
      if (selected) runtime->choice = *selected;
    }
    if (done->changed) runtime->lost.was_replaced(done->backend);
    const std::string text = json_of(*done);
    runtime->services.log(BITNET_LOG_INFO, "reload", text);
    alone.unlock();  // the callback may open and close models
    if (o.report != nullptr) o.report(o.report_user, {text.data(), text.size()});
    return {};
  });
}

bitnet_status bitnet_session_set_preference(bitnet_session* session, const char* preference,
                                            bitnet_error* err) {
  return guarded(err, "bitnet_session_set_preference", [&]() -> bitnet::result<void> {
    if (session == nullptr || preference == nullptr) return missing("session or preference");
    const auto guard = bitnet::api::guard_or_callback(*session);
    if (!guard) return std::unexpected(guard.error());
    return prefer(*session, preference);
  });
}
