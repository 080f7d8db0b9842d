#pragma once
// Describes as JSON what a GGUF file holds and whether it would run.

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "model/model.hpp"

namespace bitnet::inspect {

// The JSON text of bitnet_inspect (bitnet.h).
result<std::string> inspect(const std::filesystem::path& file, const model::load_options& options);

}  // namespace bitnet::inspect
