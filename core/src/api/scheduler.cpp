#include "schedule/scheduler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "api/edge.hpp"
#include "api/generation_options.hpp"
#include "api/preference.hpp"
#include "api/scheduler_objects.hpp"
#include "api/scheduler_report.hpp"
#include "generate/token_ids.hpp"
#include "plugin/codes/text.hpp"
#include "serving/saved_file.hpp"

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;

constexpr uint32_t default_event_capacity = 256;

// Converts the options of a scheduler's sequences, and stores them and the kind of pooling in `to`.
bitnet::result<bitnet::engine::session_options> sequences_of(const bitnet_scheduler_options& o,
                                                             uint32_t pooling_of_model,
                                                             bitnet_scheduler& to) {
  const auto taken =
      bitnet::api::take_options(o.sequences, bitnet_session_defaults, "the options of sequences");
  if (!taken) return std::unexpected(taken.error());
  if (taken->profile != 0)
    return bitnet::fail(BITNET_UNSUPPORTED,
                        "a scheduler has no times of kernels: leave profile of its sequences 0, or "
                        "open a session for them");
  const auto pooling = bitnet::api::pooling_for(*taken, pooling_of_model);
  if (!pooling) return std::unexpected(pooling.error());
  if (taken->embeddings != 0) to.embeds = *pooling;
  to.sequences = *taken;
  return bitnet::api::session_options_of(*taken);
}

bitnet::select::request wish_of(bitnet_scheduler& s) {
  const std::lock_guard lock(s.mutex);
  return s.request;
}

bitnet::result<std::unique_ptr<bitnet_scheduler>> open(bitnet_model& model,
                                                       const bitnet_scheduler_options& o) {
  auto out = std::make_unique<bitnet_scheduler>();
  auto sequences = sequences_of(o, model.model.shape().pooling, *out);
  if (!sequences) return std::unexpected(std::move(sequences.error()));
  auto board = bitnet::api::event_board::make();
  if (!board) return std::unexpected(std::move(board.error()));
  out->board = std::move(*board);
  out->model = &model;
  out->request = model.runtime->request;
  out->event_capacity = o.event_capacity == 0 ? default_event_capacity : o.event_capacity;
  bitnet::serving::engine_options how;
  how.sequences = *std::move(sequences);
  how.sequences.own_kv = true;
  how.sequences.trace = model.runtime->services.trace();
  how.sequences.on_loss = [self = out.get()](const bitnet::engine::engine_ptr& lost,
                                             const bitnet::failure& why) {
    return self->model->runtime->find_replacement(*self->model, wish_of(*self), lost, why);
  };
  if (o.max_sequences != 0) how.max_sequences = o.max_sequences;
  how.kv_bytes = o.kv_bytes;
  if (o.max_waiting != 0) how.scheduling.max_waiting = o.max_waiting;
  if (o.max_waiting_tokens != 0) how.scheduling.max_waiting_tokens = o.max_waiting_tokens;
  if (o.reader_timeout_ms != 0)
    how.scheduling.sink_patience = std::chrono::milliseconds(o.reader_timeout_ms);
  how.step_flag = model.runtime->services.make_cancel_flag();
  auto engine = model.engines->open([&](bitnet::engine::engine_ptr e) {
    return bitnet::serving::async_engine::open(std::move(e), how);
  });
  if (!engine) return std::unexpected(std::move(engine.error()));
  out->engine = std::move(*engine);
  return out;
}

// ---- a request ---------------------------------------------------------------------------------

// The prompt and its owner.
bitnet::result<bitnet::schedule::request> prompt_of(const bitnet_scheduler& to,
                                                    const bitnet_request_options& o) {
  if (o.n_prompt == 0 || o.prompt == nullptr)
    return bitnet::fail(BITNET_INVALID_ARGUMENT, "a request needs a prompt of at least one token");
  bitnet::schedule::request out;
  out.prompt.assign(o.prompt, o.prompt + o.n_prompt);
  if (auto ok = bitnet::generate::check_ids(out.prompt, to.model->model.shape().n_vocab); !ok)
    return std::unexpected(std::move(ok.error()));
  out.client = o.client;
  out.priority = o.priority;
  if (o.deadline_ms != 0)
    out.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(o.deadline_ms);
  return out;
}

bitnet::result<bitnet::schedule::request> embedding_of(const bitnet_scheduler& to,
                                                       const bitnet_request_options& o) {
  const char* const set = o.generation != nullptr        ? "generation"
                          : o.n_choices > 1              ? "n_choices"
                          : o.logprobs != 0              ? "logprobs"
                          : o.n_top_logprobs != 0        ? "n_top_logprobs"
                          : o.best_of != 0               ? "best_of"
                          : o.receipt != 0               ? "receipt"
                          : o.prompt_logprobs != 0       ? "prompt_logprobs"
                          : o.n_top_prompt_logprobs != 0 ? "n_top_prompt_logprobs"
                                                         : nullptr;
  if (set != nullptr)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        fmt::format("this scheduler was opened for embeddings and generates no "
                                    "text: leave {} of the request {}",
                                    set, o.generation != nullptr ? "NULL" : "0"));
  auto out = prompt_of(to, o);
  if (!out) return out;
  out->embeds = to.embeds;
  out->generation.max_tokens = 0;
  return out;
}

// `notes` gets the data for a receipt, if one can be asked for.
bitnet::result<bitnet::schedule::request> request_of(
    bitnet_scheduler& to, const bitnet_request_options& o,
    std::optional<bitnet::api::request_notes>& notes) {
  if (to.embeds) return embedding_of(to, o);
  const auto taken = bitnet::api::take_generation(o.generation);
  if (!taken) return std::unexpected(taken.error());
  if (taken->how.text != nullptr || taken->how.out_tokens != nullptr)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        "a request gives text and tokens as events: leave text and out_tokens of "
                        "its generation NULL");
  auto generation = bitnet::api::generation_options_of(*to.model, *taken);
  if (!generation) return std::unexpected(std::move(generation.error()));
  auto begun = prompt_of(to, o);
  if (!begun) return begun;
  bitnet::schedule::request& out = *begun;
  out.generation = *std::move(generation);
  out.generation.logprobs = o.logprobs != 0;
  out.generation.n_logprobs = o.n_top_logprobs;
  if (o.prompt_logprobs != 0) out.prompt_logprobs = o.n_top_prompt_logprobs;
  auto ahead = bitnet::api::take_speculation(taken->how.speculation, *to.model,
                                             to.engine->describe().limits.n_context, to.drafts);
  if (!ahead) return std::unexpected(std::move(ahead.error()));
  if (const auto& asked = *ahead; asked) {
    out.drafts = asked->how;
    out.make_drafter = [made = *asked] { return made.make_drafter(); };
  }
  const uint32_t n_choices = std::max(o.n_choices, 1U);
  if (o.best_of != 0 && o.best_of < n_choices)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        fmt::format("best_of {} is less than n_choices {}: let at least as many "
                                    "answers be generated as are delivered, or leave best_of 0",
                                    o.best_of, n_choices));
  out.n = std::max(o.best_of, n_choices);
  if (out.n > n_choices) out.n_best = n_choices;
  for (uint32_t i = 0; bitnet::api::has_form(taken->how) && i < out.n; ++i) {
    auto guide = bitnet::api::guide_of(*to.model, taken->how);
    if (!guide) return std::unexpected(std::move(guide.error()));
    out.grammars.push_back(std::move(*guide));
  }
  if (o.receipt != 0) {
    auto record = std::make_shared<bitnet::serving::request_record>();
    out.observer = record;
    notes.emplace(bitnet::api::request_notes{
        to.model, to.sequences, bitnet::api::record_of(taken->how, out.generation, {}, out.prompt),
        std::move(record), std::vector<std::optional<uint32_t>>(n_choices)});
  }
  return begun;
}

bitnet_str text_of(const std::string& text) {
  return {text.data(), text.size()};
}

void describe_end(const bitnet::schedule::event& e, bitnet_event& out) {
  out.stop_reason = e.stop_reason;
  out.stop_index = e.stop_index;
  out.preemptions = e.used.preemptions;
  out.n_prompt = e.used.prompt_tokens;
  out.n_cached = e.used.cached_tokens;
  out.n_generated = e.used.generated_tokens;
  out.n_recomputed = e.used.recomputed_tokens;
  out.mean_logprob = static_cast<float>(e.mean_logprob);
  out.n_drafted = e.used.drafted_tokens;
  out.n_accepted = e.used.accepted_tokens;
  out.queue_ns = e.used.queue_ns;
  out.prompt_ns = e.used.prompt_ns;
  out.generate_ns = e.used.generate_ns;
}

// Notes which choice ended with `r.last`, for its receipt.
void note_end(bitnet_request& r) {
  const bitnet::schedule::event& e = r.last;
  if (r.notes && e.what != bitnet::schedule::event::kind::piece &&
      e.delivered_index < r.notes->ended.size())
    r.notes->ended[e.delivered_index] = e.choice;
}

// Converts `r.last` for the caller; the event points into `r`.
bitnet_event event_of(bitnet_request& r) {
  using kind = bitnet::schedule::event::kind;
  const bitnet::schedule::event& e = r.last;
  bitnet_event out{};
  out.choice = e.delivered_index;
  out.candidate = e.choice;
  out.token = -1;
  out.stop_index = BITNET_NONE;
  if (e.what == kind::piece) {
    out.kind = e.of_prompt ? BITNET_EVENT_PROMPT : BITNET_EVENT_TEXT;
    out.token = e.token;
    out.text = text_of(e.text);
    out.logprob = static_cast<float>(e.logprobs.chosen);
    r.top.clear();
    for (const auto& one : e.logprobs.largest)
      r.top.push_back({one.id, static_cast<float>(one.value)});
    out.top = r.top.empty() ? nullptr : r.top.data();
    out.n_top = static_cast<uint32_t>(r.top.size());
    return out;
  }
  describe_end(e, out);
  out.kind = e.what == kind::end ? BITNET_EVENT_END : BITNET_EVENT_FAILED;
  out.embedding = e.embedding.empty() ? nullptr : e.embedding.data();
  out.n_embedding = e.embedding.size();
  if (e.what == kind::end) return out;
  out.status = e.why.status;
  out.message = text_of(e.why.message);
  return out;
}

// ---- its device --------------------------------------------------------------------------------

// A lost device is permitted again. Running requests continue there after the current step.
bitnet::result<void> move_requests(bitnet_scheduler& s, const char* list) {
  bitnet_runtime& runtime = *s.model->runtime;
  const std::lock_guard one(s.preferring);
  const bitnet::api::steady steady(runtime.switching);
  const bitnet::engine::engine_ptr here = s.engine->headed_for();
  auto wish = bitnet::api::find_preference(runtime, here->choice(), list,
                                           "bitnet_scheduler_set_preference", "scheduler");
  if (!wish) return std::unexpected(std::move(wish.error()));
  if (const bool is_lost = s.engine->is_lost(); is_lost || !wish->stays) {
    auto engine = s.model->engines->on(wish->to);
    if (!engine) return std::unexpected(std::move(engine.error()));
    if (is_lost || *engine != here)
      if (auto ok = s.engine->offer(*engine, bitnet::engine::moving::recompute,
                                    fmt::format("asked for {}", wish->wanted.text));
          !ok)
        return ok;
    runtime.lost.works_again(wish->to.device_name());
    runtime.services.log(BITNET_LOG_INFO, "scheduler",
                         fmt::format("{} was asked for: requests go on with {}, after {}",
                                     bitnet::plugin::printable(wish->wanted.text, 200),
                                     wish->to.device_name(), here->choice().device_name()));
  }
  const std::lock_guard lock(s.mutex);
  s.request = std::move(wish->wanted);
  return {};
}

}  // namespace

void bitnet_scheduler_defaults(bitnet_scheduler_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_scheduler_open(bitnet_model* model, const bitnet_scheduler_options* options,
                                    bitnet_scheduler** out, bitnet_error* err) {
  return guarded(err, "bitnet_scheduler_open", [&]() -> bitnet::result<void> {
    if (model == nullptr || out == nullptr) return missing("model or out");
    if (!model->engines)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          "the model was opened with vocabulary_only: it cannot compute");
    const auto taken = bitnet::api::take_options(options, bitnet_scheduler_defaults);
    if (!taken) return std::unexpected(taken.error());
    auto made = open(*model, *taken);
    if (!made) return std::unexpected(std::move(made.error()));
    *out = made->release();
    return {};
  });
}

void bitnet_scheduler_close(bitnet_scheduler* scheduler) {
  if (scheduler == nullptr) return;
  scheduler->model->engines->leave(*scheduler->engine);
  delete scheduler;
}

bitnet_status bitnet_scheduler_report(bitnet_scheduler* scheduler, char* out, uint64_t capacity,
                                      uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_scheduler_report", [&]() -> bitnet::result<void> {
    if (scheduler == nullptr) return missing("scheduler");
    const auto make = [&]() -> bitnet::result<std::string> {
      auto report = bitnet::api::scheduler_json(scheduler->engine->describe(),
                                                scheduler->engine->scheduler().counted());
      if (scheduler->embeds) report["pooling"] = bitnet::generate::name_of(*scheduler->embeds);
      return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    return bitnet::api::give_changing_text(
        fmt::format("scheduler {}", static_cast<const void*>(scheduler)), out, capacity, needed,
        make);
  });
}

bitnet_status bitnet_scheduler_set_preference(bitnet_scheduler* scheduler, const char* preference,
                                              bitnet_error* err) {
  return guarded(err, "bitnet_scheduler_set_preference", [&]() -> bitnet::result<void> {
    if (scheduler == nullptr || preference == nullptr) return missing("scheduler or preference");
    return move_requests(*scheduler, preference);
  });
}

bitnet_status bitnet_scheduler_save(bitnet_scheduler* scheduler, const bitnet_token* ids,
                                    uint64_t n, const char* path, uint64_t* n_saved,
                                    bitnet_error* err) {
  return guarded(err, "bitnet_scheduler_save", [&]() -> bitnet::result<void> {
    if (scheduler == nullptr || ids == nullptr || path == nullptr)
      return missing("scheduler, ids or path");
    const std::span tokens(ids, n);
    const uint64_t n_context = scheduler->engine->describe().limits.n_context;
    if (n > n_context)
      return bitnet::fail(
          BITNET_CONTEXT_FULL,
          fmt::format("{} tokens are more than the context of {}, and so never were "
                      "a prompt: give those of one request",
                      n, n_context));
    const auto saved = bitnet::serving::save(*scheduler->engine, tokens, path);
    if (!saved) return std::unexpected(saved.error());
    if (n_saved != nullptr) *n_saved = *saved;
    return {};
  });
}

bitnet_status bitnet_scheduler_restore(bitnet_scheduler* scheduler, const char* path,
                                       uint64_t* n_restored, bitnet_error* err) {
  return guarded(err, "bitnet_scheduler_restore", [&]() -> bitnet::result<void> {
    if (scheduler == nullptr || path == nullptr) return missing("scheduler or path");
    const auto restored = bitnet::serving::restore(*scheduler->engine, path);
    if (!restored) return std::unexpected(restored.error());
    if (n_restored != nullptr) *n_restored = *restored;
    return {};
  });
}

int32_t bitnet_scheduler_descriptor(const bitnet_scheduler* scheduler) {
  return scheduler == nullptr ? -1 : scheduler->board->descriptor();
}

bitnet_status bitnet_scheduler_wait(bitnet_scheduler* scheduler, uint32_t timeout_ms,
                                    bitnet_request** out, bitnet_error* err) {
  return guarded(err, "bitnet_scheduler_wait", [&]() -> bitnet::result<void> {
    if (scheduler == nullptr || out == nullptr) return missing("scheduler or out");
    *out = static_cast<bitnet_request*>(scheduler->board->wait(timeout_ms));
    if (*out != nullptr) return {};
    return bitnet::fail(BITNET_TIMEOUT,
                        fmt::format("no request has an event within {} ms", timeout_ms));
  });
}

void bitnet_request_defaults(bitnet_request_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_request_submit(bitnet_scheduler* scheduler,
                                    const bitnet_request_options* options, bitnet_request** out,
                                    bitnet_error* err) {
  return guarded(err, "bitnet_request_submit", [&]() -> bitnet::result<void> {
    if (scheduler == nullptr || options == nullptr || out == nullptr)
      return missing("scheduler, options or out");
    const auto taken = bitnet::api::take_options(options, bitnet_request_defaults);
    if (!taken) return std::unexpected(taken.error());
    auto handle = std::make_unique<bitnet_request>();
    auto request = request_of(*scheduler, *taken, handle->notes);
    if (!request) return std::unexpected(std::move(request.error()));
    handle->engine = scheduler->engine;
    const uint32_t n_delivered = request->n_best != 0 ? request->n_best : request->n;
    handle->events = std::make_shared<bitnet::api::event_queue>(
        scheduler->board, scheduler->event_capacity, n_delivered, handle.get());
    request->events = handle->events;
    auto ticket = scheduler->engine->scheduler().submit(*std::move(request));
    if (!ticket) return std::unexpected(std::move(ticket.error().what));
    handle->ticket = *ticket;
    *out = handle.release();
    return {};
  });
}

bitnet_status bitnet_request_next(bitnet_request* request, uint32_t timeout_ms, bitnet_event* out,
                                  bitnet_error* err) {
  return guarded(err, "bitnet_request_next", [&]() -> bitnet::result<void> {
    if (request == nullptr || out == nullptr) return missing("request or out");
    bool made_room = false;
    auto next = request->events->next(timeout_ms, made_room);
    if (!next) return std::unexpected(std::move(next.error()));
    request->last = *std::move(next);
    note_end(*request);
    if (made_room)
      if (const auto engine = request->engine.lock()) engine->scheduler().ready(request->ticket);
    return bitnet::api::give_result(event_of(*request), out);
  });
}

void bitnet_request_cancel(bitnet_request* request) {
  if (request == nullptr) return;
  if (const auto engine = request->engine.lock()) engine->scheduler().cancel(request->ticket);
}

void bitnet_request_close(bitnet_request* request) {
  if (request == nullptr) return;
  request->events->close();
  bitnet_request_cancel(request);
  delete request;
}
