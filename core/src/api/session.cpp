#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "api/edge.hpp"
#include "api/generation_options.hpp"
#include "api/kernels_json.hpp"
#include "api/objects.hpp"
#include "api/parts_json.hpp"
#include "compute/kv_types.hpp"
#include "engine/tuning.hpp"
#include "generate/text_tokens.hpp"
#include "grammar/gbnf.hpp"
#include "select/device_status.hpp"
#include "sequence/embedding.hpp"
#include "sequence/generating.hpp"
#include "sequence/session.hpp"

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;

bitnet::result<uint32_t> kv_dtype(uint32_t kv) {
#define BITNET_ROW(name, NAME, elements, bytes) \
  if (kv == BITNET_KV_##NAME) return BITNET_DTYPE_##NAME;
  BITNET_KV_TYPES(BITNET_ROW)
#undef BITNET_ROW
#define BITNET_ROW(name, NAME, elements, bytes) " BITNET_KV_" #NAME
  return bitnet::fail(
      BITNET_INVALID_ARGUMENT,
      fmt::format("there is no KV type {}; the KV type must be one of" BITNET_KV_TYPES(BITNET_ROW),
                  kv));
#undef BITNET_ROW
}

const char* dtype_name(uint32_t dtype) {
  return bitnet::compute::find_kv_type(dtype)->name;
}

// ---- the parts of a session's report

using nlohmann::ordered_json;

void add_tuning(ordered_json& report, const std::string& tuning) {
  const auto tuned = bitnet::engine::read_tuning(tuning);
  report["tuning"] = tuned.settings;
  for (const auto& f : tuned.figures)
    report["tuning_figures"].push_back({{"setting", f.setting},
                                        {"value", f.value},
                                        {"figure", f.figure},
                                        {"spread_pct", f.spread_percent}});
}

ordered_json kv_json(const bitnet::sequence::session::usage& u) {
  ordered_json out = {{"blocks", u.kv_blocks},
                      {"dtype_k", dtype_name(u.dtype_k)},
                      {"dtype_v", dtype_name(u.dtype_v)},
                      {"bytes", u.kv_bytes}};
  if (u.max_context != 0) out["max_context"] = u.max_context;
  if (u.window != 0) {
    out["window"] = u.window;
    out["keep"] = u.window_keep;
  }
  if (u.kv_budget != 0) {
    out["budget"] = u.kv_budget;
    out["evictions"] = u.evictions;
  }
  return out;
}

void add_speculation(ordered_json& report, const bitnet_session& of) {
  ordered_json out = {{"type", of.speculates}};
  out.update(bitnet::api::speculation_json(of.speculated));
  if (!of.draft_failure.empty()) out["why"] = of.draft_failure;
  report["speculation"] = std::move(out);
}

// ---- the options of a session

// Checks that the session was opened for this use.
bitnet::result<void> check_use(const bitnet_session& session, bool embeddings) {
  if (session.session->gives_embeddings() == embeddings) return {};
  return bitnet::fail(BITNET_INVALID_ARGUMENT,
                      embeddings ? "the session was not opened for embeddings; open one with "
                                   "embeddings set in its options"
                                 : "the session was opened for embeddings, which has no logits; "
                                   "open another one to generate or evaluate");
}

using session_guard = bitnet::api::call_guard<bitnet_session>;

// Stores the result of a call's speculation in the session.
void note_speculation(bitnet_session& session, const bitnet::speculate::speculation& s) {
  session.speculates = s.name();
  session.speculated.add(s.counted());
  if (!s.failed().empty()) session.draft_failure = s.failed();
}

// An address that is unique to this thread while it lives.
const void* thread_mark() {
  static thread_local const char mark = 0;
  return &mark;
}

// Marks that this thread runs a session's text callback, which may query the session.
class in_text {
 public:
  explicit in_text(bitnet_session& of) : of_(of) {
    of_.publish();
    of_.text_thread.store(thread_mark(), std::memory_order_relaxed);
  }
  ~in_text() { of_.text_thread.store(nullptr, std::memory_order_relaxed); }
  in_text(const in_text&) = delete;
  in_text& operator=(const in_text&) = delete;

 private:
  bitnet_session& of_;
};

// Resets the cancel flag at the end: a cancel affects one call.
class cancelled_once {
 public:
  explicit cancelled_once(bitnet_session& of) : of_(of) {}
  ~cancelled_once() { of_.cancelled->store(false, std::memory_order_relaxed); }
  cancelled_once(const cancelled_once&) = delete;
  cancelled_once& operator=(const cancelled_once&) = delete;

 private:
  bitnet_session& of_;
};

// NULL if no grammar is given. The session keeps the last one with its masks.
bitnet::result<bitnet::grammar::guide*> grammar_of(bitnet_session& session,
                                                   const bitnet_generation& how) {
  if (!bitnet::api::has_form(how)) return nullptr;
  const bool is_schema = how.json_schema.size != 0;
  const std::string_view text = bitnet::api::view(is_schema ? how.json_schema : how.grammar);
  if (session.grammar && session.grammar_text == text && session.grammar_is_schema == is_schema)
    return session.grammar.get();
  auto made = bitnet::api::guide_of(*session.model, how);
  if (!made) return std::unexpected(std::move(made.error()));
  session.grammar_text = text;
  session.grammar_is_schema = is_schema;
  session.grammar = std::move(*made);
  return session.grammar.get();
}

// The precisions to which programs may round, from BITNET_PRODUCTS_*.
bitnet::result<uint32_t> precisions_of(uint32_t products) {
  constexpr uint32_t f16 = 1u << BITNET_PRECISION_F16, bf16 = 1u << BITNET_PRECISION_BF16;
  if (products == BITNET_PRODUCTS_F32) return 0u;
  if (products == BITNET_PRODUCTS_F16) return f16;
  if (products == BITNET_PRODUCTS_BF16) return f16 | bf16;
  return bitnet::fail(BITNET_INVALID_ARGUMENT,
                      fmt::format("precision {}: expected one of BITNET_PRODUCTS_*", products));
}

}  // namespace

bitnet::result<std::optional<session_guard>> bitnet::api::guard_or_callback(
    bitnet_session& session) {
  if (session.text_thread.load(std::memory_order_relaxed) == thread_mark()) return std::nullopt;
  auto guard = session_guard::take(session, "session");
  if (!guard) return std::unexpected(guard.error());
  return std::optional(*std::move(guard));
}

bitnet::result<bitnet::sequence::pooling> bitnet::api::pooling_for(const bitnet_session_options& o,
                                                                   uint32_t of_model) {
  if (o.pooling > BITNET_POOLING_LAST)
    return of_no_kind("pooling", "MODEL, MEAN, CLS or LAST", o.pooling);
  if (o.embeddings == 0 && o.pooling != BITNET_POOLING_MODEL)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        "pooling is for sessions of embeddings; set embeddings too");
  if (o.embeddings == 0) return bitnet::sequence::pooling::last;
  return bitnet::sequence::pooling_of(o.pooling == BITNET_POOLING_MODEL ? of_model : o.pooling);
}

bitnet::result<bitnet::engine::session_options> bitnet::api::session_options_of(
    const bitnet_session_options& o) {
  bitnet::engine::session_options out;
  out.n_context = o.n_context;
  out.n_batch = o.n_batch;
  const auto k = kv_dtype(o.kv_k);
  const auto v = kv_dtype(o.kv_v);
  if (!k) return std::unexpected(k.error());
  if (!v) return std::unexpected(v.error());
  const auto precisions = precisions_of(o.precision);
  if (!precisions) return std::unexpected(precisions.error());
  out.precisions = *precisions;
  out.dtype_k = *k;
  out.dtype_v = *v;
  out.window = o.window;
  out.window_keep = o.window_keep;
  out.embeddings = o.embeddings != 0;
  out.deterministic = o.deterministic != 0 || out.embeddings;
  out.profile = o.profile != 0;
  out.low_memory = o.low_memory != 0;
  return out;
}

void bitnet_session::publish() {
  length.store(session->tokens().size(), std::memory_order_relaxed);
  capacity.store(session->capacity(), std::memory_order_relaxed);
}

bitnet_session::~bitnet_session() {
  if (session) model->engines->leave(*session);
  session.reset();
}

void bitnet_session_defaults(bitnet_session_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_session_open(bitnet_model* model, const bitnet_session_options* options,
                                  bitnet_session** out, bitnet_error* err) {
  return guarded(err, "bitnet_session_open", [&]() -> bitnet::result<void> {
    if (model == nullptr || out == nullptr) return missing("model or out");
    if (!model->engines)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          "the model was opened with vocabulary_only: it cannot compute");
    const auto taken = bitnet::api::take_options(options, bitnet_session_defaults);
    if (!taken) return std::unexpected(taken.error());
    auto options_of = bitnet::api::session_options_of(*taken);
    if (!options_of) return std::unexpected(options_of.error());
    bitnet::engine::session_options& so = *options_of;
    const auto pooling = bitnet::api::pooling_for(*taken, model->model.shape().pooling);
    if (!pooling) return std::unexpected(pooling.error());
    auto handle = std::make_unique<bitnet_session>(model);
    handle->pooling = *pooling;
    handle->asked = *taken;
    so.cancelled = handle->cancelled.get();
    so.trace = model->runtime->services.trace();
    bitnet_session& self = *handle;
    so.on_loss = [&self](const bitnet::engine::engine_ptr& lost, const bitnet::failure& why) {
      return self.model->runtime->find_replacement(*self.model, self.request, lost, why);
    };
    auto session = model->engines->open([&](bitnet::engine::engine_ptr e) {
      return bitnet::sequence::session::open(std::move(e), so,
                                             bitnet::cancel_flags::token_of(*self.cancelled));
    });
    if (!session) return std::unexpected(session.error());
    handle->session = std::move(*session);
    handle->publish();
    *out = handle.release();
    return {};
  });
}

void bitnet_session_close(bitnet_session* session) {
  if (session == nullptr) return;
  // A running call ends soon and then destroys the session, so nothing is touched after close().
  session->cancelled->store(true, std::memory_order_relaxed);
  if (session->calls.close()) delete session;
}

bitnet_status bitnet_session_eval(bitnet_session* session, const bitnet_token* ids, uint64_t n,
                                  uint32_t all_rows, float* logits, uint64_t capacity,
                                  bitnet_error* err) {
  return guarded(err, "bitnet_session_eval", [&]() -> bitnet::result<void> {
    if (session == nullptr || (ids == nullptr && n != 0)) return missing("session or ids");
    if (auto ok = check_use(*session, false); !ok) return ok;
    const auto guard = session_guard::take(*session, "session");
    if (!guard) return std::unexpected(guard.error());
    const cancelled_once once(*session);
    return session->session->eval({ids, n}, all_rows != 0,
                                  {logits, logits == nullptr ? 0 : capacity});
  });
}

bitnet_status bitnet_embed(bitnet_session* session, const bitnet_token* ids, uint64_t n, float* out,
                           uint64_t capacity, uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_embed", [&]() -> bitnet::result<void> {
    if (session == nullptr || (ids == nullptr && n != 0)) return missing("session or ids");
    if (auto ok = check_use(*session, true); !ok) return ok;
    const uint64_t width = session->session->row_floats();
    if (needed != nullptr) *needed = width;
    if (out == nullptr && capacity == 0) return {};
    if (out == nullptr || capacity < width)
      return bitnet::fail(
          BITNET_INVALID_ARGUMENT,
          fmt::format("room for {} numbers, but an embedding has {}", capacity, width));
    const auto guard = session_guard::take(*session, "session");
    if (!guard) return std::unexpected(guard.error());
    const cancelled_once once(*session);
    return bitnet::sequence::embed(*session->session, {ids, n}, session->pooling, {out, width});
  });
}

uint64_t bitnet_session_length(const bitnet_session* session) {
  return session == nullptr ? 0 : session->length.load(std::memory_order_relaxed);
}

uint64_t bitnet_session_capacity(const bitnet_session* session) {
  return session == nullptr ? 0 : session->capacity.load(std::memory_order_relaxed);
}

bitnet_status bitnet_session_truncate(bitnet_session* session, uint64_t n, bitnet_error* err) {
  return guarded(err, "bitnet_session_truncate", [&]() -> bitnet::result<void> {
    if (session == nullptr) return missing("session");
    const auto guard = session_guard::take(*session, "session");
    if (!guard) return std::unexpected(guard.error());
    return session->session->truncate(n);
  });
}

void bitnet_session_cancel(bitnet_session* session) {
  if (session != nullptr) session->cancelled->store(true, std::memory_order_relaxed);
}

void bitnet_session_clear_cancel(bitnet_session* session) {
  if (session != nullptr) session->cancelled->store(false, std::memory_order_relaxed);
}

bitnet_status bitnet_session_report(bitnet_session* session, char* out, uint64_t capacity,
                                    uint64_t* needed, bitnet_error* err) {
  return guarded(err, "bitnet_session_report", [&]() -> bitnet::result<void> {
    if (session == nullptr) return missing("session");
    const auto guard = bitnet::api::guard_or_callback(*session);
    if (!guard) return std::unexpected(guard.error());
    const auto make = [&]() -> bitnet::result<std::string> {
      auto usage = session->session->report();
      if (!usage) return std::unexpected(usage.error());
      const auto& engine = session->session->owner();
      nlohmann::ordered_json report = {{"backend", engine.backend_name()},
                                       {"device", engine.choice().device_name()}};
      if (auto status = bitnet::select::asked_now(engine.main().status()); !status.is_null())
        report["device_status"] = std::move(status);
      if (const std::string& tuned = engine.main().tuning(); !tuned.empty())
        add_tuning(report, tuned);
      report["threads"] = session->model->runtime->services.parallel_width();
      report["kernels"] = bitnet::api::kernels_json(usage->ran);
      report["steps"] = usage->steps;
      report["tokens"] = usage->tokens;
      if (session->session->gives_embeddings())
        report["pooling"] = bitnet::sequence::name_of(session->pooling);
      report["kv"] = kv_json(*usage);
      report["parts"] = bitnet::api::parts_json(engine);
      if (!session->speculates.empty()) add_speculation(report, *session);
      const auto& moves = session->session->moves();
      const uint64_t n_moves = session->session->n_moves();
      if (n_moves != 0) report["moves"] = bitnet::api::moves_json(moves);
      if (n_moves > moves.size()) report["moves_before"] = n_moves - moves.size();
      return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    return bitnet::api::give_changing_text(
        fmt::format("session {}", static_cast<const void*>(session)), out, capacity, needed, make);
  });
}

bitnet_status bitnet_generate(bitnet_session* session, const bitnet_token* prompt,
                              uint64_t n_prompt, const bitnet_generation* options,
                              bitnet_generation_result* out, bitnet_error* err) {
  return guarded(err, "bitnet_generate", [&]() -> bitnet::result<void> {
    if (session == nullptr || (prompt == nullptr && n_prompt != 0) || out == nullptr)
      return missing("session, prompt or out");
    if (auto ok = check_use(*session, false); !ok) return ok;
    const auto taken = bitnet::api::take_generation(options);
    if (!taken) return std::unexpected(taken.error());
    const bitnet_generation& o = taken->how;

    const auto guard = session_guard::take(*session, "session");
    if (!guard) return std::unexpected(guard.error());
    session->answer = {};  // a failure below leaves no answer, also not an earlier one
    auto g = bitnet::api::generation_options_of(*session->model, *taken);
    if (!g) return std::unexpected(g.error());
    if (o.text != nullptr)
      g->text = [&](std::string_view text) {
        const in_text here(*session);
        return o.text(o.text_user, {text.data(), text.size()}) == 0;
      };
    auto grammar = grammar_of(*session, o);
    if (!grammar) return std::unexpected(grammar.error());
    g->grammar = *grammar;
    const auto ahead = bitnet::api::take_speculation(o.speculation, *session->model,
                                                     session->session->capacity(), session->drafts);
    if (!ahead) return std::unexpected(ahead.error());
    std::optional<bitnet::speculate::speculation> drafts;
    if (*ahead) drafts.emplace((*ahead)->make_drafter(), (*ahead)->how);
    const cancelled_once once(*session);
    session->answer = bitnet::api::record_of(o, *g, session->session->tokens(), {prompt, n_prompt});

    const auto begun = std::chrono::steady_clock::now();
    auto done =
        bitnet::sequence::generate_text(*session->session, {prompt, n_prompt}, *std::move(g),
                                        session->cancelled.get(), drafts ? &*drafts : nullptr);
    const auto took = std::chrono::steady_clock::now() - begun;
    bitnet::api::note_answer(session->answer, done, static_cast<uint64_t>(took.count()));
    if (drafts) note_speculation(*session, *drafts);
    if (!done) {
      session->grammar.reset();  // it may be the cause, and is useless then
      return std::unexpected(done.error());
    }
    const auto& [stop_reason, stop_index, tokens] = done->outcome;
    if (o.out_tokens != nullptr)
      std::copy_n(tokens.begin(), std::min<uint64_t>(o.out_capacity, tokens.size()), o.out_tokens);
    bitnet_generation_result r{};
    r.stop_reason = stop_reason;
    r.n_prompt = done->n_prompt;
    r.n_generated = tokens.size();
    r.prompt_ns = done->prompt_ns;
    r.generate_ns = done->generate_ns;
    r.stop_index = stop_index;
    if (drafts) {
      r.n_drafted = drafts->counted().drafted;
      r.n_accepted = drafts->counted().accepted;
    }
    return bitnet::api::give_result(r, out);
  });
}
