#pragma once
// Loads a backend's file again, while sessions compute on the copy that is loaded.
//
// Everything is prepared beside the copy that serves: the new file is inspected, probed and loaded,
// it gets the weights of every open model, and its logits are compared with the old copy's. Only
// then new sessions take it. A failure at any step leaves all as it was.
//
// Memory  two sets of the weights while both copies serve. Weights that a backend takes as they lie
//         in the model file are in memory once.
// Threads one reload of a runtime at a time; the caller sees to it, and that no model is opened or
//         closed meanwhile.

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/model_engines.hpp"
#include "reload/backend_copies.hpp"
#include "reload/canary.hpp"
#include "reload/verify.hpp"
#include "select/selection.hpp"

namespace bitnet::reload {

inline constexpr uint32_t default_old_copies = 4;

struct options {
  std::optional<engine::moving> sessions;  // nullopt: they finish where they are
  bool force = false;                      // reload even if the file is the one that is loaded
  bool accept_stale = false;               // reload even if libraries that it needs were replaced
  uint32_t most_old_copies = default_old_copies;
  uint32_t prompt = default_prompt;
  double tolerance = default_tolerance;
  canary_options canary;
};

struct outcome {
  std::string backend;  // its name
  bool changed = false;
  std::string reason;  // why nothing changed
  std::string build_id, former_build_id;
  std::string version, former_version;
  uint32_t copy_number = 0;  // of the new copy; 0: the backend was not in use
  uint32_t models = 0;       // models whose weights it got
  engine::model_engines::moved sessions;
  comparison verified;
  canary_result watched;
  std::vector<std::string> stale;  // libraries that were replaced on disk
};

// The runtime's objects that a reload works on.
struct reload_scope {
  select::registry& registry;
  select::report& report;
  std::mutex& mutex;                        // guards registry and report
  std::optional<select::choice>& selected;  // of the runtime, if it has chosen
  backend_copies& copies;
  std::vector<engine::model_engines*> models;
  std::function<void(const std::string&)> note;
};

// BITNET_REJECTED or BITNET_UNAVAILABLE if the new file is rejected, with its code and reason; or
// the backend's status if it failed to take the weights.
result<outcome> run(const reload_scope& scope, const std::string& backend, const options& how);

}  // namespace bitnet::reload
