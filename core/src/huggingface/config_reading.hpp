#pragma once
// What the readers of config.json of each architecture share. What is missing or of another kind
// reads as absent.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "huggingface/config.hpp"
#include "huggingface/json_members.hpp"

namespace bitnet::huggingface {

std::optional<uint32_t> count_of(const nlohmann::json& x);
std::optional<uint32_t> count_at(const nlohmann::json& object, const char* key);
std::optional<float> number_at(const nlohmann::json& object, const char* key);
result<uint32_t> needed(const nlohmann::json& c, const char* key);  // a count

// How the linear layers are kept; `usual`: where nothing says it.
// docs/reference/weights.md#checkpoints
result<linear_kind> linear_kind_of(const nlohmann::json& c, linear_kind usual);

result<void> check_biases(const nlohmann::json& c);

// Of a model without windows and biases that computes with SiLU or, if it is not "", with `other`.
result<config> silu_or(const nlohmann::json& c, const std::string& other, linear_kind usual);

// Which part of a head rotates.
double rotating_share(const nlohmann::json& c, const nlohmann::json& parameters, double usual);

// After how many layers one comes that sees everything: each n-th, by layer_types, where the others
// are of the type `other`, or by the first of `keys` that there is, or as it is usual.
result<uint32_t> period_of(const nlohmann::json& c, uint64_t n_layers, const char* other,
                           std::initializer_list<const char*> keys, uint32_t usual);

}  // namespace bitnet::huggingface
