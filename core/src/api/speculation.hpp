#pragma once
// What callers say of a speculation, and what is reported of it.

#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "sequence/model_drafter.hpp"
#include "speculate/speculation.hpp"

namespace bitnet::api {

// The sessions of the draft model that was asked for last. Threads any.
class draft_models {
 public:
  // Of `draft`, whose vocabulary is that of `of`; with a context of `n_context` tokens, 0: as the
  // draft model has.
  result<std::shared_ptr<sequence::draft_sessions>> sessions(const bitnet_model& of,
                                                             bitnet_model& draft,
                                                             uint32_t n_context);

 private:
  std::mutex turn_;
  const bitnet_model* last_ = nullptr;
  uint32_t n_context_ = 0;
  std::shared_ptr<sequence::draft_sessions> sessions_;
};

// A speculation as it was asked for. Its drafters are made one for each sequence.
struct taken_speculation {
  speculate::options how;
  std::shared_ptr<sequence::draft_sessions> draft;  // nullptr: look-up
  [[nodiscard]] std::unique_ptr<speculate::drafter> make_drafter() const;
};

// nullopt: none was asked for. `n_context`: of the main model's sequences.
result<std::optional<taken_speculation>> take_speculation(const bitnet_speculation* given,
                                                          const bitnet_model& of,
                                                          uint32_t n_context, draft_models& drafts);

nlohmann::ordered_json speculation_json(const speculate::counts& c);

}  // namespace bitnet::api
