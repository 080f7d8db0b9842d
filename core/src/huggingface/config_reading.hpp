#pragma once
// Shared by the readers of config.json of each architecture. A missing member, or one of another
// type, reads as absent.

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

// How the linear layers are stored; `usual`: the default.
// docs/reference/weights.md#checkpoints
result<linear_kind> linear_kind_of(const nlohmann::json& c, linear_kind usual);

result<void> check_biases(const nlohmann::json& c);

// Reads a model without windows and biases; its activation is SiLU or, if not "", `other`.
result<config> silu_or(const nlohmann::json& c, const std::string& other, linear_kind usual);

// The share of a head that rotates.
double rotating_share(const nlohmann::json& c, const nlohmann::json& parameters, double usual);

// The period of layers with full attention: every n-th layer. By layer_types, if the other layers
// have the type `other`; else by the first existing key of `keys`; else the default.
result<uint32_t> period_of(const nlohmann::json& c, uint64_t n_layers, const char* other,
                           std::initializer_list<const char*> keys, uint32_t usual);

}  // namespace bitnet::huggingface
