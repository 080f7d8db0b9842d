#pragma once
// Selects the choices of a request that are delivered: those with the highest mean log probability
// of their tokens. Events are kept until all choices have ended.
//
// Memory   of choices that have ended, only the pieces of the best are kept.
// Owner    the job.
// Threads  the scheduler's.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/request.hpp"

namespace bitnet::schedule {

class selection {
 public:
  // 1 <= n_best < n_choices. `shows_logprobs`: pieces are delivered with their log probabilities.
  selection(uint32_t n_best, uint32_t n_choices, bool shows_logprobs);

  // Whether events are not kept any more: the best were taken, or it was given up.
  [[nodiscard]] bool is_over() const { return is_over_; }
  // Keeps a piece of a choice.
  void add(event&& piece);
  // Keeps the end or the failure of a choice, with its mean_logprob. Returns whether it was the
  // last.
  bool end(event&& last);
  // To be called once all have ended. Returns the ends of choices that are not delivered, with
  // `delivered_index` not_delivered, then all events of the best, in the order of their ranks. Of
  // equals the lower choice is better; failed choices come behind the others.
  std::vector<event> take();
  // The request ends before all choices have. From now on only ends are delivered, of n_best
  // choices.
  void give_up();
  // The delivered_index of a choice after give_up().
  [[nodiscard]] uint32_t delivered_index_of(uint32_t choice) const {
    return choice < n_best_ ? choice : event::not_delivered;
  }

 private:
  struct piece {
    int32_t token;
    bool is_end_token;
    std::string text;
    generate::token_logprobs logprobs;
  };
  struct candidate {
    std::vector<piece> pieces;
    std::optional<event> last;
  };
  [[nodiscard]] std::vector<uint32_t> ended_by_rank() const;

  const uint32_t n_best_;
  const bool shows_logprobs_;
  std::vector<candidate> all_;
  uint32_t n_ended_ = 0;
  bool is_over_ = false;
};

}  // namespace bitnet::schedule
