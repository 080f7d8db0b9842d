#pragma once
// Reads a caller's options of speculation, and reports on it.

#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "sequence/model_drafter.hpp"
#include "speculate/speculation.hpp"

namespace bitnet::api {

// The sessions of the last draft model. Thread-safe.
class draft_models {
 public:
  // Sessions of `draft`, whose vocabulary must equal that of `of`. `n_context` in tokens; 0: the
  // draft model's own.
  result<std::shared_ptr<sequence::draft_sessions>> sessions(const bitnet_model& of,
                                                             bitnet_model& draft,
                                                             uint32_t n_context);

 private:
  std::mutex mutex_;
  const bitnet_model* last_ = nullptr;
  uint32_t n_context_ = 0;
  std::shared_ptr<sequence::draft_sessions> sessions_;
};

// The options of a speculation. Each sequence makes its own drafter from them.
struct taken_speculation {
  speculate::options how;
  std::shared_ptr<sequence::draft_sessions> draft;  // nullptr: look-up
  [[nodiscard]] std::unique_ptr<speculate::drafter> make_drafter() const;
};

// nullopt: not asked for. `n_context`: tokens of the main model's sequences.
result<std::optional<taken_speculation>> take_speculation(const bitnet_speculation* given,
                                                          const bitnet_model& of,
                                                          uint32_t n_context, draft_models& drafts);

nlohmann::ordered_json speculation_json(const speculate::counts& c);

}  // namespace bitnet::api
