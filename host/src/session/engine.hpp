#pragma once
// Opens backend, model and session from settings, and prints what the user should see meanwhile.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "library/handles.hpp"
#include "plan/plan.hpp"
#include "settings/environment.hpp"
#include "settings/settings.hpp"
#include "terminal/console.hpp"
#include "timeline/timeline.hpp"

namespace bitnet::host {

// Arguments of every command.
struct invocation {
  const settings& set;
  const std::vector<std::string>& positionals;
  const environment& variables;
  const console& out;                   // standard error
  timeline::timeline* trace = nullptr;  // from --trace; outlives every runtime
  const plans::plan* plan = nullptr;    // from --plan, read once, since it may be a pipe

  // The same invocation with other settings, which outlive it.
  [[nodiscard]] invocation with(const settings& other) const {
    return {other, positionals, variables, out, trace, plan};
  }
};

// `fresh`: probes backends again instead of using remembered results.
[[nodiscard]] result<runtime_handle> open_runtime(const invocation& in, bool fresh = false);

// Also prints the selection line, whether the selection succeeded or not. Leaves memory for a
// session of `n_context` tokens as open_session() opens it. `tune`: the backend measures its
// settings now.
[[nodiscard]] result<model_handle> open_model(const invocation& in, bitnet_runtime* runtime,
                                              const std::string& file, uint32_t n_context,
                                              bool tune = false);
// Opens tokenizer and metadata only, without a backend.
[[nodiscard]] result<model_handle> open_vocabulary(const invocation& in, const std::string& file);
// Opens the model of --model-draft; its signature must be in the usual place. Empty if the command
// has no such option or it is not given.
[[nodiscard]] result<model_handle> open_draft(const invocation& in, bitnet_runtime* runtime);

// The options with which open_session() and open_scheduler() open sequences. Borrows nothing.
[[nodiscard]] bitnet_session_options session_options(const settings& set, uint32_t n_context,
                                                     bool profile, bool embeddings);
// `n_context`: tokens of context; 0: chosen by the model or the library. The session is for
// embeddings if the command has no options of the output head.
[[nodiscard]] result<session_handle> open_session(const invocation& in, bitnet_model* model,
                                                  uint32_t n_context, bool profile);

inline constexpr uint32_t most_parallel = 1024;  // most concurrent requests of a scheduler
// Opens a scheduler for `max_sequences` concurrent requests (0: the library's default) of at most
// `n_context` tokens each. `embeddings` needs the option --pooling. `kv_bytes`: memory for keys and
// values; 0: as --kv-budget says.
[[nodiscard]] result<scheduler_handle> open_scheduler(const invocation& in, bitnet_model* model,
                                                      uint32_t n_context, uint32_t max_sequences,
                                                      bool embeddings = false,
                                                      uint64_t kv_bytes = 0);

// Notes which device has which layers, unless the selected device has all of them.
void note_layers(const console& out, bitnet_runtime* runtime, bitnet_session* session);

// Handles that belong together, closed in the right order.
struct engine {
  std::string file;
  runtime_handle runtime;
  model_handle model;
  model_handle draft;    // from --model-draft; empty: none
  shadow_handle shadow;  // from --shadow; empty: none
  session_handle session;
};
// `wanted` as in find_model.
[[nodiscard]] result<engine> open_engine(const invocation& in, const std::string& wanted);
// The same without notes to the user; the session is as open_session() opens it.
[[nodiscard]] result<engine> open_silently(const invocation& in, const std::string& wanted,
                                           uint32_t n_context, bool profile);

// Tokens of one step, from --batch-size and --ubatch-size.
[[nodiscard]] uint32_t step_size(const settings& set);

// Options for reading a model file and for its required signers, which every command that reads one
// has. `set` outlives the result.
[[nodiscard]] bitnet_model_options model_options(const settings& set);
// Sets what shares a scale among the activations of a running model.
void set_activations(const settings& set, bitnet_model_options& options);
[[nodiscard]] std::string selection_line(bitnet_runtime* runtime);
[[nodiscard]] result<nlohmann::json> runtime_report(bitnet_runtime* runtime);
[[nodiscard]] result<nlohmann::json> session_report(bitnet_session* session);
[[nodiscard]] result<nlohmann::json> scheduler_report(bitnet_scheduler* scheduler);

}  // namespace bitnet::host
