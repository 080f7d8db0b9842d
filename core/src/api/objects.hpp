#pragma once
// The types behind the opaque handles of bitnet.h.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "api/answer_record.hpp"
#include "api/call_guard.hpp"
#include "api/speculation.hpp"
#include "base/cancel_flags.hpp"
#include "bitnet/bitnet.h"
#include "chat/tool_support.hpp"
#include "engine/engine.hpp"
#include "engine/lost_devices.hpp"
#include "engine/model_engines.hpp"
#include "engine/split.hpp"
#include "generate/dry_breakers.hpp"
#include "grammar/guide.hpp"
#include "model/model.hpp"
#include "plugin/loading/backend.hpp"
#include "receipt/digest.hpp"
#include "reload/backend_copies.hpp"
#include "schema/known_forms.hpp"
#include "select/selection.hpp"
#include "sequence/embedding.hpp"
#include "sequence/session.hpp"
#include "signature/model_judge.hpp"
#include "threads/pool.hpp"
#include "threads/worker_places.hpp"
#include "trace/recorder.hpp"
#include "trial/trial.hpp"

namespace bitnet::api {

// model.cpp
result<model::load_options> load_options_of(const bitnet_model_options& o);
// An option whose value is none of `kinds`, which is a list as in "A, B or C".
std::unexpected<failure> of_no_kind(const std::string& option, const char* kinds, uint32_t found);
// session.cpp
result<engine::session_options> session_options_of(const bitnet_session_options& o);
// `of_model`: the pooling that the model's file declares.
result<sequence::pooling> pooling_for(const bitnet_session_options& o, uint32_t of_model);
// splitting.cpp
result<engine::split_options> split_options_of(const bitnet_model_options& o);

// The services of the runtime for plugins: log, threads, clock and cancellation. Thread-safe.
class services final : public plugin::host_services {
 public:
  // `cpus`: threads may run only on these; empty: anywhere.
  services(const bitnet_runtime_options& options, const threads::cpu_list& cpus);
  ~services() override;

  void log(uint32_t level, std::string_view component, std::string_view message) override;
  uint32_t parallel_width() override { return pool_.width(); }
  bitnet_status parallel_run(uint32_t n, bitnet_task task, void* arg) override {
    threads::pool* const own = threads::pool_of_thread::get();
    return (own == nullptr ? pool_ : *own).run(n, task, arg);
  }
  bool cancelled(uint64_t token) override { return cancel_flags::is_set(token); }
  uint64_t now_ns() override;
  std::vector<std::pair<std::string, std::string>> params(std::string_view name) override;

  // Why there are fewer threads than requested, or than this machine can use.
  const std::optional<failure>& shortage() const { return pool_.shortage(); }
  uint32_t wanted_threads() const { return width_; }

  // The CPUs of its threads: member `threads` of the report.
  nlohmann::ordered_json describe_threads() const;

  // CPUs that workers may use.
  const threads::cpu_list& usable_cpus() const { return usable_; }

  // Receives the events of steps.
  const trace::listener& trace() const { return trace_; }

  // A flag with which a caller cancels work; plugins get its token.
  cancel_flags::owned make_cancel_flag() { return cancel_flags_.make(); }

 private:
  services(const bitnet_runtime_options& options, const threads::cpu_list& wanted,
           const threads::cpu_list& usable);

  const bool strict_;
  const threads::cpu_list usable_;  // CPUs that workers may use
  const uint32_t width_;            // threads requested
  const uint32_t poll_;
  const std::vector<std::string> params_;            // "cpu.isa=avx2"
  const std::vector<threads::worker_place> places_;  // empty: threads are not pinned
  threads::pool pool_;
  const uint32_t log_level_;
  const bitnet_log_callback log_;  // NULL: no callback
  void* const log_user_;
  const trace::listener trace_;
  std::mutex log_mutex_;
  cancel_flags cancel_flags_;
};

}  // namespace bitnet::api

struct bitnet_runtime {
  bitnet_runtime(const bitnet_runtime_options& options, const bitnet::threads::cpu_list& cpus,
                 bitnet::plugin::policy rules);

  // Chooses a device on the first call. Later calls return the same one, unless a reload or a lost
  // device changed it.
  bitnet::result<bitnet::select::choice> choose();
  // Adds answers of slow backends to the report. The caller holds `mutex`.
  void catch_up();
  // Returns the first usable device of `wanted` outside `without`, loaded. `late` gets the backends
  // before it that have not answered yet.
  bitnet::result<bitnet::select::choice> choose_other(const bitnet::select::request& wanted,
                                                      const std::set<std::string>& without,
                                                      std::vector<std::string>* late = nullptr);
  // Finds another device for a session whose device is lost.
  bitnet::result<bitnet::engine::engine_ptr> find_replacement(
      bitnet_model& model, const bitnet::select::request& wanted,
      const bitnet::engine::engine_ptr& from, const bitnet::failure& why);

  bitnet::api::services services;
  bitnet::select::request request;
  bitnet::reload::backend_copies copies;
  bitnet::engine::lost_devices lost;
  const bitnet::receipt::remembered_sums sums;  // of files that receipts name
  // A reload locks it exclusively; opening and closing models and moving sessions lock it shared.
  std::shared_mutex switching;
  std::mutex mutex;  // guards what follows
  bitnet::select::registry registry;
  bitnet::select::report report;
  std::optional<bitnet::result<bitnet::select::choice>> choice;
  bool all_answered = true;  // no probe is running
  std::vector<bitnet_model*> models;
};

struct bitnet_model {
  bitnet_model(bitnet::model::model m, bitnet_runtime* r) : model(std::move(m)), runtime(r) {}
  ~bitnet_model();
  // Divides the model among the devices of `wanted`.
  bitnet::result<bitnet::engine::placement> place(const bitnet::select::choice& wanted) const;
  bitnet::model::model model;
  bitnet_runtime* runtime;                               // NULL with vocabulary_only
  std::optional<bitnet::signature::verified> signature;  // if verification was asked for
  bitnet::engine::split_options split;
  bitnet::engine::kv_budget budget;
  bool copies = false;                                     // BITNET_LOAD_COPIED
  std::unique_ptr<bitnet::engine::model_engines> engines;  // likewise; destroyed before model
  // The template that "auto" stands for; chosen and reported at first use.
  mutable std::once_flag chat_once;
  mutable bitnet::chat::choice chat;
  // The parsed template, and its support of tools.
  mutable std::once_flag chat_source_once;
  mutable std::unique_ptr<const bitnet::chat::source> chat_source;
  mutable std::once_flag chat_tools_once;
  mutable bitnet::chat::tool_support chat_tools;
  // SHA-256 of tokenizer and template, for receipts. They have megabytes and do not change, so they
  // are hashed once.
  mutable std::once_flag sums_once;
  mutable std::string tokenizer_sum, template_sum;  // the latter "" without a template
  // The vocabulary in the form that grammars need; made for the first grammar.
  std::once_flag texts_once;
  std::shared_ptr<const bitnet::grammar::prefix_tree> texts;
  bitnet::generate::known_breakers breakers;  // sequence breakers of DRY
  bitnet::schema::known_forms forms;          // compiled grammars and schemas
};

struct bitnet_session {
  explicit bitnet_session(bitnet_model* m)
      : model(m),
        request(m->runtime->request),
        cancelled(m->runtime->services.make_cancel_flag()) {}
  ~bitnet_session();
  // Publishes the values that other threads may read while a call works.
  void publish();
  void at_end_of_call() { publish(); }
  bitnet::api::one_call calls;
  std::atomic<uint64_t> length{0}, capacity{0};
  // Identifies the thread that runs this session's text callback, or NULL.
  std::atomic<const void*> text_thread{nullptr};
  bitnet_model* model;
  bitnet::select::request request;  // devices to try when its device is lost
  const bitnet::cancel_flags::owned cancelled;
  bitnet::sequence::pooling pooling = bitnet::sequence::pooling::last;  // of embeddings
  std::unique_ptr<bitnet::sequence::session> session;
  bitnet_session_options asked{};     // options at opening
  bitnet::api::answer_record answer;  // of the last bitnet_generate
  std::string grammar_text;           // the last grammar or JSON schema, compiled in `grammar`
  bool grammar_is_schema = false;
  std::unique_ptr<bitnet::grammar::guide> grammar;
  bitnet::api::draft_models drafts;
  std::string speculates;  // the last drafter; "": none yet
  bitnet::speculate::counts speculated;
  std::string draft_failure;  // why the last draft model failed
};

namespace bitnet::api {

// Takes the call guard of the session. Returns nullopt if the caller is the session's own text
// callback, whose thread holds the guard already.
result<std::optional<call_guard<bitnet_session>>> guard_or_callback(bitnet_session& session);

}  // namespace bitnet::api

struct bitnet_trial {
  bitnet_trial(uint32_t threads, std::unique_ptr<bitnet::trial::trial> t)
      : n_threads(threads), trial(std::move(t)) {}
  void at_end_of_call() {}
  bitnet::api::one_call calls;
  uint32_t n_threads;
  std::unique_ptr<bitnet::trial::trial> trial;
};
