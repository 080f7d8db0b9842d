#pragma once
// Which device gets what of a model: all of it, or the last layers, with the others on the host.
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
  // Layers on the devices that were asked for, from the last one on, with the head; as many as the
  // model has: all but the embedding; more: all of it. nullopt: as many as fit.
  std::optional<uint32_t> n_layers{};
  bool whole_only = false;  // what does not fit is refused
  // How the layers are shared out over the devices of the backend, in their order; empty: one.
  std::vector<float> shares{};
  session_options planned{};  // for which there is room when all is loaded
};

// Gives a split its devices, and receives its messages.
struct split_keeper {
  std::function<result<select::choice>()> host;                      // the best CPU
  std::function<result<select::choice>(uint32_t index)> of_backend;  // the one that was asked for
  // Whether the host alone will do when not one layer fits.
  bool may_leave = false;
  // Whether it will not, even when nothing else is asked for: the device was insisted on.
  bool is_required = false;
  std::function<void(uint32_t level, const std::string& text)> log;  // BITNET_LOG_*
};

// BITNET_INVALID_ARGUMENT: finite numbers, none below 0, not all of them 0, no more than the most.
result<void> check_shares(const std::vector<float>& shares);

// Layers [first, last) by shares: where each device's begin, and their end.
std::vector<uint32_t> share_out(uint32_t first, uint32_t last, const std::vector<float>& shares);

// Opens the devices and gives each its section. BITNET_OUT_OF_DEVICE_MEMORY, or _OUT_OF_MEMORY of
// the host, with what is needed, what is free and what to do, where it does not fit.
result<placement> split(const select::choice& wanted, const model::model& m,
                        const split_options& how, const kv_budget& budget, bool copies,
                        const split_keeper& by);

}  // namespace bitnet::engine
