#pragma once
// The JSON files of a checkpoint's folder.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.hpp"

namespace bitnet::huggingface {

// Of the type `wanted`, an object or an array.
result<nlohmann::json> read_json(const std::filesystem::path& folder, const char* name,
                                 nlohmann::json::value_t wanted = nlohmann::json::value_t::object);

// A file that a checkpoint may do without: then null.
result<nlohmann::json> read_optional(const std::filesystem::path& folder, const char* name);

}  // namespace bitnet::huggingface
