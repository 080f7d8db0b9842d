#pragma once
// The states of a service from loading its model to the end of the process: is it alive, does it
// take requests, may it end. The caller passes the time; no clock is read here.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "http/answer.hpp"

namespace bitnet::host {

// Progress of a model's engine.
struct engine_work {
  std::string model;
  uint64_t steps = 0;     // steps that have ended
  bool has_work = false;  // work is queued for a step
  bool is_lost = false;   // its device is lost, without a substitute
};

class service_life {
 public:
  using time = std::chrono::steady_clock::time_point;
  enum class stage : uint8_t { loading, ready, draining, ended };

  // `hang_time`: a step that takes longer, with work queued, is a hang.
  // `drain_time`: how long running requests may continue after the end was requested.
  service_life(std::chrono::milliseconds hang_time, std::chrono::milliseconds drain_time)
      : hang_time_(hang_time), drain_time_(drain_time) {}

  // The model is loaded, and the engine has answered.
  void is_loaded();
  // Takes the state of all existing engines.
  void observe(std::span<const engine_work> engines, time now);
  // SIGTERM, SIGINT: the first begins the drain, the second ends it.
  void asked_to_end(time now);
  // Whether the process may end: a second signal came, the drain's time is over, or no request is
  // unanswered.
  [[nodiscard]] bool may_end(std::size_t n_unanswered, time now) const;

  [[nodiscard]] stage at() const { return stage_; }
  [[nodiscard]] bool hangs(time now) const;
  [[nodiscard]] bool ended_in_time(std::size_t n_unanswered) const {
    return stage_ == stage::draining && n_unanswered == 0;
  }

  // GET /health: 200 {"status": "ok"} while the process works. 503 while the model is loading, as
  // in llama-server, and if the engine hangs. During a drain it is 200.
  [[nodiscard]] http::answer health(time now) const;
  // GET /ready: 200 while new requests are taken, else 503 with the reason.
  [[nodiscard]] http::answer readiness(time now) const;
  // Why a new request is rejected; none if it is taken. A hang rejects none, since the step may
  // end.
  [[nodiscard]] std::optional<http::answer> rejection(time now) const;

 private:
  [[nodiscard]] unsigned seconds_of_drain(time now) const;

  std::chrono::milliseconds hang_time_, drain_time_;
  stage stage_ = stage::loading;
  time end_of_drain_{};
  struct wait {
    uint64_t steps = 0;
    std::optional<time> since;  // start of waiting for a step's end, with work queued
  };
  [[nodiscard]] std::optional<time> waits_since() const;  // of the engine that has waited longest

  std::map<std::string, wait> engines_;  // by model
};

}  // namespace bitnet::host
