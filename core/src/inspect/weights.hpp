#pragma once
// Describes as JSON the weights of a model file, and which of them look wrong.

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/model.hpp"

namespace bitnet::inspect {

// The JSON text of bitnet_inspect_weights (bitnet.h). Reads all norms, and all linear layers in
// I2_S or floats. `rules`: see weight_rules.hpp.
result<std::string> inspect_weights(const std::filesystem::path& file,
                                    const model::load_options& options, std::string_view rules);

}  // namespace bitnet::inspect
