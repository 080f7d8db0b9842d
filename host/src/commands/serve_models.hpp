#pragma once
// The models of `bitnet serve`: which it has, what one needs, and how one is loaded.

#include <vector>

#include "commands/request_defaults.hpp"
#include "library/engine.hpp"
#include "models/model_table.hpp"

namespace bitnet::host {

// Of -m, of the words behind the command and of --models-dir. Exit code 2 or 3 with what is wrong:
// a file that is not there, two models of one name, options that only one model can have.
[[nodiscard]] result<model_table_options> given_models(const invocation& in);

// What it is given outlives the loader. Models are what served_model is.
[[nodiscard]] model_loader loader_of(const invocation& in, bitnet_runtime* runtime,
                                     const request_defaults& requests);

}  // namespace bitnet::host
