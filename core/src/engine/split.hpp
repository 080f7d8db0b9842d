#pragma once
// Divides a model over devices: all of it on one, or the last layers, with the others on the CPU.
//
// Source  docs/adr/0040-a-model-is-cut-between-layers.md

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"

namespace bitnet::engine {

inline constexpr uint32_t most_split_devices = 64;

struct split_options {
  // Number of last layers, with the output head, that are placed on the requested devices. The
  // model's number of layers: all but the embedding; more: the whole model. nullopt: as many as
  // fit.
  std::optional<uint32_t> n_layers{};
  bool whole_only = false;  // an error if the model does not fit
  // Shares of the layers for the backend's devices, in their order; empty: one device has all.
  std::vector<float> shares{};
  session_options planned{};  // the session that must fit beside the loaded weights
};

// Provides the devices for split(), and receives its messages.
struct split_access {
  std::function<result<select::choice>()> cpu;                       // the best CPU
  std::function<result<select::choice>(uint32_t index)> of_backend;  // the device of this index
  // Whether split() may use only the CPU if no layer fits on a device.
  bool may_leave = false;
  // Whether the device was required: the CPU alone does not suffice, even if nothing else is asked
  // for.
  bool is_required = false;
  std::function<void(uint32_t level, const std::string& text)> log;  // BITNET_LOG_*
};

// BITNET_INVALID_ARGUMENT unless they are finite, >= 0, not all 0, and not too many.
result<void> check_shares(const std::vector<float>& shares);

// Divides the layers [first, last) by shares: returns where each device's layers begin, and `last`.
std::vector<uint32_t> share_out(uint32_t first, uint32_t last, const std::vector<float>& shares);

// Opens the devices and gives each its section. If the model does not fit,
// BITNET_OUT_OF_DEVICE_MEMORY, or _OUT_OF_MEMORY for the CPU; the message says what is needed,
// what is free and what to do.
result<placement> split(const select::choice& wanted, const model::model& m,
                        const split_options& how, const kv_budget& budget, bool copies,
                        const split_access& by);

}  // namespace bitnet::engine
