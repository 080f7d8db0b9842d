#pragma once
// The facts that decide the bytes of a runner's blocks and states, except the model's own bytes.

#include "engine/limits.hpp"
#include "kv/saved_sequence.hpp"
#include "runner/model_runner.hpp"

namespace bitnet::serving {

// `options`: those that the runner was opened with.
[[nodiscard]] kv::saved_form form_of(const runner::model_runner& runner,
                                     const engine::session_options& options);

}  // namespace bitnet::serving
