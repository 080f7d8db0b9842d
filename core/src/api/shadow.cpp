#include "shadow/shadow_run.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/edge.hpp"
#include "api/scheduler_objects.hpp"
#include "plugin/codes/text.hpp"

struct bitnet_shadow {
  bitnet_model* model = nullptr;
  std::string requested;
  bitnet_session_options sequences{};  // as asked for; its pointers are NULL
  std::shared_ptr<bitnet::shadow::shadow_run> run;
};

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;
using nlohmann::ordered_json;

// 0.1 for 0.1F: the shortest decimal number that is this float.
double decimal_of(float x) {
  const std::string text = fmt::format("{}", x);
  double out = x;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// The first usable device of the list; an error if one before it has not answered.
bitnet::result<bitnet::select::choice> device_of(bitnet_runtime& runtime, const char* list) {
  bitnet::select::request wanted = runtime.request;
  wanted.text = list;
  wanted.requested_by = "bitnet_shadow_open";
  wanted.require_first = false;
  std::vector<std::string> late;
  auto choice = runtime.choose_other(wanted, {}, &late);
  if (!choice || late.empty()) return choice;
  return bitnet::fail(BITNET_TIMEOUT,
                      fmt::format("{} has not answered yet, so no shadow is opened; ask again once "
                                  "bitnet_runtime_wait_probes says that it has",
                                  bitnet::plugin::join(late, ", ")));
}

bitnet::result<std::unique_ptr<bitnet_shadow>> open(bitnet_model& model,
                                                    const bitnet_shadow_options& o) {
  if (o.device == nullptr)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        "device of the shadow is NULL: name the backend or device to compare with");
  const auto taken =
      bitnet::api::take_options(o.sequences, bitnet_session_defaults, "the options of sequences");
  if (!taken) return std::unexpected(taken.error());
  auto sequences = bitnet::api::session_options_of(*taken);
  if (!sequences) return std::unexpected(std::move(sequences.error()));
  bitnet_runtime& runtime = *model.runtime;
  bitnet::shadow::options how;
  how.sequences = *std::move(sequences);
  if (o.share != 0) how.share = decimal_of(o.share);
  if (o.waiting != 0) how.waiting = o.waiting;
  how.op_tolerance = double{o.op_tolerance};
  how.cancelled = runtime.services.make_cancel_flag();
  how.threads = runtime.services.parallel_width();
  how.cpus = runtime.services.usable_cpus();
  how.on_failure = [&runtime](const bitnet::failure& why) {
    runtime.services.log(BITNET_LOG_WARN, "shadow",
                         fmt::format("it ended, and texts go on without: {}", why.message));
  };
  const bitnet::api::steady steady(runtime.switching);
  const auto device = device_of(runtime, o.device);
  if (!device) return std::unexpected(device.error());
  auto engine = model.engines->on(*device);
  if (!engine) return std::unexpected(std::move(engine.error()));
  auto run = bitnet::shadow::shadow_run::open(*std::move(engine), std::move(how));
  if (!run) return std::unexpected(std::move(run.error()));
  auto out = std::make_unique<bitnet_shadow>();
  out->model = &model;
  out->requested = o.device;
  out->sequences = *taken;
  out->run = std::move(*run);
  return out;
}

// ---- the report --------------------------------------------------------------------------------

ordered_json worst_json(const bitnet::shadow::totals& t) {
  ordered_json out = {{"source", t.worst.at.source}};
  if (t.worst.at.of.request != 0) {
    out["request"] = t.worst.at.of.request;
    out["choice"] = t.worst.at.of.choice;
  }
  out["position"] = t.worst.at.position;
  if (std::isfinite(t.worst.by.kl)) out["kl"] = t.worst.by.kl;
  out["max_abs"] = t.worst.by.max_abs;
  out["live_token"] = t.worst.by.live_top;
  out["shadow_token"] = t.worst.by.shadow_top;
  return out;
}

ordered_json search_json(const bitnet::shadow::shadow_run::search& s) {
  ordered_json out = {{"found", s.first.has_value()}, {"tokens", s.tokens}};
  if (!s.first) return out;
  out["op"] = s.first->op;
  out["index"] = s.first->index;
  out["of"] = s.first->of;
  if (!s.first->layer_or_name.empty()) out["at"] = s.first->layer_or_name;
  if (std::isfinite(s.first->max_abs)) out["max_abs"] = s.first->max_abs;
  return out;
}

ordered_json report_of(const bitnet_shadow& s) {
  const auto f = s.run->describe();
  ordered_json out = {{"state", f.why ? "failed" : "running"}};
  if (f.why) out["error"] = f.why->message;
  out["device"] = {{"requested", s.requested},
                   {"selected", f.on.device},
                   {"backend", f.on.backend},
                   {"version", f.on.version},
                   {"build_id", f.on.build_id}};
  out["share"] = f.share;
  out["rows"] = {{"seen", f.seen},
                 {"offered", f.offered},
                 {"compared", f.compared.rows},
                 {"dropped", f.dropped},
                 {"waiting", f.waiting}};
  out["same_bytes"] = f.compared.same_bytes;
  out["same_top"] = f.compared.same_top;
  out["kl"] = {{"mean", f.compared.mean_kl()},
               {"max", f.compared.max_kl},
               {"undefined", f.compared.without_kl}};
  out["max_abs"] = f.compared.max_abs;
  if (f.compared.rows != 0) out["worst"] = worst_json(f.compared);
  if (f.searched) out["first_op"] = search_json(*f.searched);
  out["offering_ns"] = {{"sum", f.offer_ns}, {"longest", f.longest_offer_ns}};
  return out;
}

// ---- sessions and schedulers -------------------------------------------------------------------

// Checks that rows of both sequences use the same arithmetic.
bitnet::result<void> check_fits(const bitnet_shadow& s, const bitnet_model* model,
                                const bitnet_session_options& live, uint64_t n_context) {
  if (model != s.model)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        "the shadow is of another model; open one for this model");
  const bitnet_session_options& own = s.sequences;
  const char* const differs = live.embeddings != 0                  ? "embeddings"
                              : n_context != s.run->n_context()     ? "n_context"
                              : live.kv_k != own.kv_k               ? "kv_k"
                              : live.kv_v != own.kv_v               ? "kv_v"
                              : live.precision != own.precision     ? "precision"
                              : live.window != own.window           ? "window"
                              : live.window_keep != own.window_keep ? "window_keep"
                                                                    : nullptr;
  if (differs == nullptr) return {};
  return bitnet::fail(
      BITNET_INVALID_ARGUMENT,
      fmt::format("the sequences of the shadow differ in {}: open it with the same `sequences` as "
                  "what it is to be compared with",
                  differs));
}

std::shared_ptr<bitnet::generate::row_listener> listener_of(const bitnet_shadow* s) {
  return s == nullptr ? nullptr : s->run->attach();
}

}  // namespace

void bitnet_shadow_defaults(bitnet_shadow_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_shadow_open(bitnet_model* model, const bitnet_shadow_options* options,
                                 bitnet_shadow** out, bitnet_error* err) {
  return guarded(err, "bitnet_shadow_open", [&]() -> bitnet::result<void> {
    if (model == nullptr || out == nullptr) return missing("model or out");
    if (!model->engines)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          "the model was opened with vocabulary_only: it cannot compute");
    const auto taken = bitnet::api::take_options(options, bitnet_shadow_defaults);
    if (!taken) return std::unexpected(taken.error());
    auto made = open(*model, *taken);
    if (!made) return std::unexpected(std::move(made.error()));
    *out = made->release();
    return {};
  });
}

void bitnet_shadow_close(bitnet_shadow* shadow) {
  if (shadow == nullptr) return;
  shadow->run->end();
  delete shadow;
}

bitnet_status bitnet_shadow_report(bitnet_shadow* shadow, char* out, uint64_t capacity,
                                   uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_shadow_report", [&]() -> bitnet::result<void> {
    if (shadow == nullptr) return missing("shadow");
    const auto make = [&]() -> bitnet::result<std::string> {
      return report_of(*shadow).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    return bitnet::api::give_changing_text(
        fmt::format("shadow {}", static_cast<const void*>(shadow)), out, capacity, needed, make);
  });
}

bitnet_status bitnet_shadow_find_op(bitnet_shadow* shadow, bitnet_error* err) {
  return guarded(err, "bitnet_shadow_find_op", [&]() -> bitnet::result<void> {
    if (shadow == nullptr) return missing("shadow");
    return shadow->run->find_op(shadow->model->engines->current());
  });
}

bitnet_status bitnet_session_set_shadow(bitnet_session* session, bitnet_shadow* shadow,
                                        bitnet_error* err) {
  return guarded(err, "bitnet_session_set_shadow", [&]() -> bitnet::result<void> {
    if (session == nullptr) return missing("session");
    const auto guard = bitnet::api::guard_or_callback(*session);
    if (!guard) return std::unexpected(guard.error());
    if (shadow != nullptr)
      if (auto ok =
              check_fits(*shadow, session->model, session->asked, session->session->capacity());
          !ok)
        return ok;
    session->session->set_listener(listener_of(shadow));
    return {};
  });
}

bitnet_status bitnet_scheduler_set_shadow(bitnet_scheduler* scheduler, bitnet_shadow* shadow,
                                          bitnet_error* err) {
  return guarded(err, "bitnet_scheduler_set_shadow", [&]() -> bitnet::result<void> {
    if (scheduler == nullptr) return missing("scheduler");
    if (shadow != nullptr)
      if (auto ok = check_fits(*shadow, scheduler->model, scheduler->sequences,
                               scheduler->engine->describe().limits.n_context);
          !ok)
        return ok;
    scheduler->engine->set_listener(listener_of(shadow));
    return {};
  });
}
