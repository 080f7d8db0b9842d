#pragma once
// Reads the JSON files of a checkpoint's folder.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.hpp"

namespace bitnet::huggingface {

// Reads a file whose value must have the type `wanted`, object or array.
result<nlohmann::json> read_json(const std::filesystem::path& folder, const char* name,
                                 nlohmann::json::value_t wanted = nlohmann::json::value_t::object);

// Reads an optional file; null if it is absent.
result<nlohmann::json> read_optional(const std::filesystem::path& folder, const char* name);

}  // namespace bitnet::huggingface
