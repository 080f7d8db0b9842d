#pragma once
// The models of a folder: GGUF files, and folders of a checkpoint or of one GGUF file.

#include <string>
#include <vector>

#include "models/model_source.hpp"
#include "result.hpp"

namespace bitnet::host {

// By name. A name is that of the file without .gguf, or that of the folder; of two with one name
// the file counts. Exit code 2 where the folder cannot be read.
[[nodiscard]] result<std::vector<model_source>> models_in(const std::string& folder);

}  // namespace bitnet::host
