#pragma once
// The models of `bitnet serve`: their list, their memory need, and the loader.

#include <vector>

#include "commands/request_defaults.hpp"
#include "models/model_table.hpp"
#include "session/engine.hpp"

namespace bitnet::host {

// Lists the models of -m, of the positional words and of --models-dir. Exit code 2 or 3 for a
// missing file, two models of one name, or options that only a single model can have.
[[nodiscard]] result<model_table_options> given_models(const invocation& in);

// Returns a loader whose models are of type served_model. All arguments outlive it.
[[nodiscard]] model_loader loader_of(const invocation& in, bitnet_runtime* runtime,
                                     const request_defaults& requests);

}  // namespace bitnet::host
