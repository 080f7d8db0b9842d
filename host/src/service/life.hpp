#pragma once
// From the loading of the model to the end of the process: whether the service is alive, whether it
// takes requests, and when it may end. It is given the time, and asks no clock.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "http/answer.hpp"

namespace bitnet::host {

// What the engine of a model does.
struct engine_work {
  std::string model;
  uint64_t steps = 0;     // that it has ended
  bool has_work = false;  // that a step would serve
  bool is_lost = false;   // its device, and no other can take its place
};

class service_life {
 public:
  using time = std::chrono::steady_clock::time_point;
  enum class stage : uint8_t { loading, ready, draining, ended };

  // `hang_time`: a step that takes longer, with work queued, is a hang.
  // `drain_time`: how long requests may go on once the end was asked for.
  service_life(std::chrono::milliseconds hang_time, std::chrono::milliseconds drain_time)
      : hang_time_(hang_time), drain_time_(drain_time) {}

  // The model is loaded, and the engine has answered.
  void is_loaded();
  // Of all engines that there are.
  void observe(std::span<const engine_work> engines, time now);
  // SIGTERM, SIGINT: the first begins the drain, the second ends it.
  void asked_to_end(time now);
  // Whether the process may end: asked twice, the drain's time is over, or nothing is unanswered.
  [[nodiscard]] bool may_end(std::size_t n_unanswered, time now) const;

  [[nodiscard]] stage at() const { return stage_; }
  [[nodiscard]] bool hangs(time now) const;
  [[nodiscard]] bool ended_in_time(std::size_t n_unanswered) const {
    return stage_ == stage::draining && n_unanswered == 0;
  }

  // GET /health: 200 {"status": "ok"} while the process works; 503 while the model is loaded, as
  // llama-server has it, and when the engine hangs. A drain is healthy.
  [[nodiscard]] http::answer health(time now) const;
  // GET /ready: 200 while new requests are taken, else 503 with the reason.
  [[nodiscard]] http::answer readiness(time now) const;
  // Why a new request is refused; none while they are taken. A hang refuses none: the step may end.
  [[nodiscard]] std::optional<http::answer> refusal(time now) const;

 private:
  [[nodiscard]] unsigned seconds_of_drain(time now) const;

  std::chrono::milliseconds hang_time_, drain_time_;
  stage stage_ = stage::loading;
  time end_of_drain_{};
  struct wait {
    uint64_t steps = 0;
    std::optional<time> since;  // for the end of a step, with work queued
  };
  [[nodiscard]] std::optional<time> waits_since() const;  // the engine that waits the longest

  std::map<std::string, wait> engines_;  // by model
};

}  // namespace bitnet::host
