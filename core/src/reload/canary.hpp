#pragma once
// Tests a new copy of a backend on live texts: it computes their rows beside the old copy, until a
// given number of rows was compared.
//
// Threads  the reload's thread.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/cancel_flags.hpp"
#include "base/result.hpp"
#include "engine/model_engines.hpp"
#include "threads/pool.hpp"

namespace bitnet::reload {

inline constexpr std::chrono::milliseconds default_canary_patience{60'000};

struct canary_options {
  uint32_t rows = 0;  // how many are to be compared; 0: there is no canary
  std::chrono::milliseconds patience = default_canary_patience;
  // As in shadow::options.
  uint32_t threads = 1;
  threads::cpu_list cpus;
  std::function<std::shared_ptr<cancel_flags::flag>()> make_flag;
};

struct canary_result {
  uint64_t rows = 0, same_bytes = 0, same_top = 0;
  double max_kl = 0;
  double difference = 0;  // the largest, relative to the largest logit of its row
};

// An engine whose tenants are watched, and the engine that is to replace it.
struct watched_engine {
  engine::model_engines* model;
  engine::engine_ptr old, fresh;
};

// Does not change texts. BITNET_REJECTED as soon as a row differs by more than `tolerance` or has
// other infinities or NaN; BITNET_TIMEOUT if too few rows came in time; BITNET_UNAVAILABLE if none
// can come, as there is no session or scheduler without a shadow of its own; or the failure that
// ended a shadow.
result<canary_result> watch(std::span<const watched_engine> engines, const canary_options& how,
                            double tolerance);

}  // namespace bitnet::reload
