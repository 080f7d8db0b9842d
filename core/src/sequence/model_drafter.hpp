#pragma once
// A smaller model of the same vocabulary as a drafter: it goes on greedily behind the sequence, on
// a session of its own.
//
// Memory  Each sequence that drafts has a session of the draft model while it does; sessions that
//         none has any more are kept for the next one.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "sequence/session.hpp"
#include "speculate/drafter.hpp"

namespace bitnet::sequence {

// Sessions of one draft model. Threads any.
class draft_sessions {
 public:
  using opener = std::function<result<std::unique_ptr<session>>()>;
  // The pool calls it before it destroys a session, so that the opener can release its place.
  using closer = std::function<void(session&)>;
  draft_sessions(opener open, closer close) : open_(std::move(open)), close_(std::move(close)) {}
  ~draft_sessions();
  draft_sessions(const draft_sessions&) = delete;
  draft_sessions& operator=(const draft_sessions&) = delete;

  // Of those that are free the one that was used last.
  result<std::unique_ptr<session>> take();
  void give_back(std::unique_ptr<session> s);

 private:
  const opener open_;
  const closer close_;
  std::mutex turn_;
  std::vector<std::unique_ptr<session>> free_;
};

class model_drafter final : public speculate::drafter {
 public:
  explicit model_drafter(std::shared_ptr<draft_sessions> from) : from_(std::move(from)) {}
  ~model_drafter() override;

  // Opens its session at the first call, and computes all of `tokens`. After a pause it computes
  // no more than the last 64: what a try costs does not grow with the pause. A failure of the draft
  // model is one of this call alone.
  result<void> propose(std::span<const int32_t> tokens, uint32_t most,
                       std::vector<int32_t>& draft) override;
  [[nodiscard]] const char* name() const override { return "draft"; }

 private:
  result<void> catch_up(std::span<const int32_t> tokens);
  [[nodiscard]] int32_t likeliest() const;

  const std::shared_ptr<draft_sessions> from_;
  std::unique_ptr<session> session_;  // nullptr: before the first call
  bool has_read_ = false;             // it has computed all tokens once
  std::size_t from_token_ = 0;        // of the sequence, that the session begins with
  std::vector<float> logits_;
  runner::listed_logits largest_;  // in their place, unless it is empty
};

}  // namespace bitnet::sequence
