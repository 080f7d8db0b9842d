#pragma once
// From settings to open handles: the backend, the model and a session, with what the user should
// see on the way.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "library/handles.hpp"
#include "plan/plan.hpp"
#include "settings/environment.hpp"
#include "settings/settings.hpp"
#include "terminal/console.hpp"
#include "timeline/timeline.hpp"

namespace bitnet::host {

// What every command is given.
struct invocation {
  const settings& set;
  const std::vector<std::string>& positionals;
  const environment& variables;
  const console& out;                   // standard error
  timeline::timeline* trace = nullptr;  // of --trace; outlives every runtime
  const plans::plan* plan = nullptr;    // of --plan, which was read once: it may be a pipe

  // The same with other settings, which outlive it.
  [[nodiscard]] invocation with(const settings& other) const {
    return {other, positionals, variables, out, trace, plan};
  }
};

// `fresh`: backends are asked again, whatever is remembered of them.
[[nodiscard]] result<runtime_handle> open_runtime(const invocation& in, bool fresh = false);

// Also prints the selection line, whether the choice worked or not. Room is left for a session of
// `n_context` tokens as open_session() has it. `tune`: the backend measures its settings now.
[[nodiscard]] result<model_handle> open_model(const invocation& in, bitnet_runtime* runtime,
                                              const std::string& file, uint32_t n_context,
                                              bool tune = false);
// Tokenizer and metadata only; needs no backend.
[[nodiscard]] result<model_handle> open_vocabulary(const invocation& in, const std::string& file);
// The model of --model-draft, whose signature lies in its usual place. Empty where the command
// takes none, or none is given.
[[nodiscard]] result<model_handle> open_draft(const invocation& in, bitnet_runtime* runtime);

// What open_session() and open_scheduler() open sequences with. Borrows nothing.
[[nodiscard]] bitnet_session_options session_options(const settings& set, uint32_t n_context,
                                                     bool profile, bool embeddings);
// `n_context` tokens of context; 0 = what the model or the library chooses. For embeddings, if the
// command has no options of the output head.
[[nodiscard]] result<session_handle> open_session(const invocation& in, bitnet_model* model,
                                                  uint32_t n_context, bool profile);

inline constexpr uint32_t most_parallel = 1024;  // requests at once that a scheduler takes
// For `max_sequences` requests at once, 0 being the library's number, each of at most `n_context`
// tokens. For `embeddings` a command needs the option --pooling. `kv_bytes` of keys and values; 0:
// as --kv-budget has it.
[[nodiscard]] result<scheduler_handle> open_scheduler(const invocation& in, bitnet_model* model,
                                                      uint32_t n_context, uint32_t max_sequences,
                                                      bool embeddings = false,
                                                      uint64_t kv_bytes = 0);

// Notes which device has come to have what, where it is not the selected one that has all.
void note_layers(const console& out, bitnet_runtime* runtime, bitnet_session* session);

// All of it, closed in the right order.
struct engine {
  std::string file;
  runtime_handle runtime;
  model_handle model;
  model_handle draft;    // of --model-draft; empty: none
  shadow_handle shadow;  // of --shadow; the same
  session_handle session;
};
// `wanted` as in find_model.
[[nodiscard]] result<engine> open_engine(const invocation& in, const std::string& wanted);
// The same without notes to the user, for a session as open_session() has it.
[[nodiscard]] result<engine> open_silently(const invocation& in, const std::string& wanted,
                                           uint32_t n_context, bool profile);

// Tokens of one step, of --batch-size and --ubatch-size.
[[nodiscard]] uint32_t step_size(const settings& set);

// How files are read and by whom they must be signed, which every command that reads one has
// options for. `set` outlives it.
[[nodiscard]] bitnet_model_options model_options(const settings& set);
// What shares a scale in a model that runs.
void set_activations(const settings& set, bitnet_model_options& options);
[[nodiscard]] std::string selection_line(bitnet_runtime* runtime);
[[nodiscard]] result<nlohmann::json> runtime_report(bitnet_runtime* runtime);
[[nodiscard]] result<nlohmann::json> session_report(bitnet_session* session);
[[nodiscard]] result<nlohmann::json> scheduler_report(bitnet_scheduler* scheduler);

}  // namespace bitnet::host
