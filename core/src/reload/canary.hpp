#pragma once
// Live texts as the test of a new copy of a backend: it computes their rows beside the old copy,
// until so many were compared.
//
// Threads  that of the reload.

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
  uint32_t rows = 0;  // that are to be compared; 0: there is no canary
  std::chrono::milliseconds patience = default_canary_patience;
  // As of shadow::options.
  uint32_t threads = 1;
  threads::cpu_list cpus;
  std::function<std::shared_ptr<cancel_flags::flag>()> make_flag;
};

struct canary_result {
  uint64_t rows = 0, same_bytes = 0, same_top = 0;
  double max_kl = 0;
  double difference = 0;  // the largest, over the largest logit of its row
};

// Of an engine whose tenants are watched, and the one that is to take its place.
struct watched_engine {
  engine::model_engines* model;
  engine::engine_ptr old, fresh;
};

// Texts go on as ever. BITNET_REJECTED as soon as a row differs by more than `tolerance` or is of
// other infinities or NaN; BITNET_TIMEOUT where too few rows came in time; BITNET_UNAVAILABLE where
// none can come, as no session or scheduler without a shadow of its own is there; and whatever
// ended a shadow.
result<canary_result> watch(std::span<const watched_engine> engines, const canary_options& how,
                            double tolerance);

}  // namespace bitnet::reload
