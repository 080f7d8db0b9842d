#pragma once
// Lists the models of a folder: GGUF files, and folders with a checkpoint or one GGUF file.

#include <string>
#include <vector>

#include "basic/result.hpp"
#include "models/model_source.hpp"

namespace bitnet::host {

// Sorted by name. A name is the file's without .gguf, or the folder's; if both exist, the file
// wins. Exit code 2 if the folder cannot be read.
[[nodiscard]] result<std::vector<model_source>> models_in(const std::string& folder);

}  // namespace bitnet::host
