#pragma once
// Finds the file of a model: the one that the user named, or the demo model.

#include <filesystem>
#include <string>
#include <vector>

#include "basic/result.hpp"
#include "settings/environment.hpp"

namespace bitnet::host {

// Folders with models, in search order: BITNET_MODELS, the user's, one beside the program's prefix,
// the installed one.
[[nodiscard]] std::vector<std::filesystem::path> model_folders(const environment& variables);

// `wanted`: a path, a name in those folders with or without .gguf, or "" for the demo model.
// Exit code 3 when there is no such file.
[[nodiscard]] result<std::string> find_model(const std::string& wanted,
                                             const environment& variables);

// Exit code 2 if `target` is a GGUF file, which results must not overwrite.
[[nodiscard]] result<void> check_is_no_model(const std::string& target);

}  // namespace bitnet::host
