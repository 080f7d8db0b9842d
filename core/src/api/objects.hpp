#pragma once
// What the opaque handles of bitnet.h point to.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "chat/template.hpp"
#include "grammar/guide.hpp"
#include "model/model.hpp"
#include "plugin/loading/backend.hpp"
#include "reload/generations.hpp"
#include "select/selection.hpp"
#include "session/embedding.hpp"
#include "session/engine.hpp"
#include "session/lost_devices.hpp"
#include "session/model_engines.hpp"
#include "session/session.hpp"
#include "session/split.hpp"
#include "session/trial.hpp"
#include "threads/placement.hpp"
#include "threads/pool.hpp"

namespace bitnet::api {

// model.cpp
result<model::load_options> load_options_of(const bitnet_model_options& o);
// session.cpp
result<session::session_options> session_options_of(const bitnet_session_options& o);
// splitting.cpp
result<session::split_options> split_options_of(const bitnet_model_options& o);

// What plugins are given: the log, the threads, the clock and word of cancellations. Thread-safe.
class services final : public plugin::host_services {
 public:
  // `cpus` that the threads are kept to; empty: none are named.
  services(const bitnet_runtime_options& options, const threads::cpu_list& cpus);
  ~services() override;

  void log(uint32_t level, std::string_view component, std::string_view message) override;
  uint32_t parallel_width() override { return pool_.width(); }
  bitnet_status parallel_run(uint32_t n, bitnet_task task, void* arg) override {
    return pool_.run(n, task, arg);
  }
  bool cancelled(uint64_t token) override;
  uint64_t now_ns() override;
  std::vector<std::pair<std::string, std::string>> params(std::string_view name) override;

  // Where its threads compute: the member `threads` of the report.
  nlohmann::ordered_json describe_threads() const;

  // A token that follows `flag` until it is forgotten.
  uint64_t follow(const std::atomic<bool>& flag);
  void forget(uint64_t token);

 private:
  services(const bitnet_runtime_options& options, const threads::cpu_list& wanted,
           const threads::cpu_list& usable);

  const bool strict_;
  const threads::cpu_list usable_;  // by workers
  const uint32_t width_;
  const uint32_t poll_;
  const std::vector<std::string> params_;            // "cpu.isa=avx2"
  const std::vector<threads::worker_place> places_;  // empty: nobody is kept anywhere
  threads::pool pool_;
  const uint32_t log_level_;
  const bitnet_log_callback log_;  // NULL: nobody listens
  void* const log_user_;
  std::mutex log_turn_;
  std::mutex turn_;  // guards what follows
  uint64_t next_token_ = 1;
  std::map<uint64_t, const std::atomic<bool>*> followed_;
};

}  // namespace bitnet::api

struct bitnet_runtime {
  bitnet_runtime(const bitnet_runtime_options& options, const bitnet::threads::cpu_list& cpus,
                 bitnet::plugin::policy rules);

  // Chooses on the first call; later calls give the same answer, as far as no reload and no lost
  // device changed it.
  bitnet::result<bitnet::select::choice> choose();
  // Takes what slow backends have answered meanwhile into the report; with `turn` held.
  void catch_up();
  // The first device of `wanted` that is none of `without`, loaded.
  bitnet::result<bitnet::select::choice> choose_other(const bitnet::select::request& wanted,
                                                      const std::set<std::string>& without);
  // Where a session goes whose device is lost.
  bitnet::result<bitnet::session::engine_ptr> find_refuge(bitnet_model& model,
                                                          const bitnet::select::request& wanted,
                                                          const bitnet::session::engine_ptr& from,
                                                          const bitnet::failure& why);

  bitnet::api::services services;
  bitnet::select::request request;
  bitnet::reload::generations generations;
  bitnet::session::lost_devices lost;
  // Held alone by a reload, shared by what opens or closes models or moves sessions.
  std::shared_mutex switching;
  std::mutex turn;  // guards what follows
  bitnet::select::registry registry;
  bitnet::select::report report;
  std::optional<bitnet::result<bitnet::select::choice>> choice;
  bool all_answered = true;  // no probe is under way
  std::vector<bitnet_model*> models;
};

struct bitnet_model {
  bitnet_model(bitnet::model::model m, bitnet_runtime* r) : model(std::move(m)), runtime(r) {}
  ~bitnet_model();
  // Which devices have what of it when `wanted` is asked for.
  bitnet::result<bitnet::session::placement> place(const bitnet::select::choice& wanted) const;
  bitnet::model::model model;
  bitnet_runtime* runtime;  // NULL with vocabulary_only
  bitnet::session::split_options split;
  bitnet::session::kv_budget budget;
  bool copies = false;                                      // of weights: BITNET_LOAD_COPIED
  std::unique_ptr<bitnet::session::model_engines> engines;  // likewise; goes before model
  // What "auto" is for it: found out, and told, when it is first asked for.
  mutable std::once_flag chat_once;
  mutable bitnet::chat::choice chat;
  // Its vocabulary as grammars need it: made when the first one is given.
  std::once_flag texts_once;
  std::shared_ptr<const bitnet::grammar::prefix_tree> texts;
};

struct bitnet_session {
  explicit bitnet_session(bitnet_model* m) : model(m), request(m->runtime->request) {}
  ~bitnet_session();
  bitnet_model* model;
  bitnet::select::request request;  // where it may go when its device is lost
  std::atomic<bool> cancelled{false};
  uint64_t cancel_token = 0;
  bitnet::session::pooling pooling = bitnet::session::pooling::last;  // of embeddings
  std::unique_ptr<bitnet::session::session> session;
  std::string grammar_text;  // of the last grammar, and what was learnt of it
  std::unique_ptr<bitnet::grammar::guide> grammar;
};

struct bitnet_trial {
  uint32_t n_threads;
  std::unique_ptr<bitnet::session::trial> trial;
};
