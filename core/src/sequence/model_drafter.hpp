#pragma once
// A drafter that is a smaller model of the same vocabulary: it continues the sequence greedily, on
// a session of its own.
//
// Memory  Each sequence that drafts has a session of the draft model meanwhile. Sessions that are
//         no longer used are kept for the next sequence.

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
  // Called before a session is destroyed, so that the opener can release its place.
  using closer = std::function<void(session&)>;
  draft_sessions(opener open, closer close) : open_(std::move(open)), close_(std::move(close)) {}
  ~draft_sessions();
  draft_sessions(const draft_sessions&) = delete;
  draft_sessions& operator=(const draft_sessions&) = delete;

  // Takes the free session that was used last, or opens one.
  result<std::unique_ptr<session>> take();
  void give_back(std::unique_ptr<session> s);

 private:
  const opener open_;
  const closer close_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<session>> free_;
};

class model_drafter final : public speculate::drafter {
 public:
  explicit model_drafter(std::shared_ptr<draft_sessions> from) : from_(std::move(from)) {}
  ~model_drafter() override;

  // Opens its session at the first call, and computes all of `tokens`. After a pause it computes
  // only the last 64, so that the cost of a try does not grow with the pause. A failure of the
  // draft model fails this call only.
  result<void> propose(std::span<const int32_t> tokens, uint32_t most,
                       std::vector<int32_t>& draft) override;
  [[nodiscard]] const char* name() const override { return "draft"; }

 private:
  result<void> catch_up(std::span<const int32_t> tokens);
  [[nodiscard]] int32_t likeliest() const;

  const std::shared_ptr<draft_sessions> from_;
  std::unique_ptr<session> session_;  // nullptr: before the first call
  bool has_read_ = false;             // it has computed all tokens once
  std::size_t from_token_ = 0;        // index in the sequence of the session's first token
  std::vector<float> logits_;
  runner::listed_logits largest_;  // used in place of logits_, unless it is empty
};

}  // namespace bitnet::sequence
