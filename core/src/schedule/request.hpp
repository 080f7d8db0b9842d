#pragma once
// A client's request to the scheduler, and the events that answer it.
//
// Threads  a sink is called by the scheduler's thread only, with no lock held; it may call the
//          scheduler back.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "generate/embedding.hpp"
#include "generate/generation.hpp"
#include "grammar/guide.hpp"
#include "kv/block_pool.hpp"
#include "speculate/speculation.hpp"

namespace bitnet::schedule {

using time_point = std::chrono::steady_clock::time_point;
using nanoseconds = std::chrono::nanoseconds;

// Names a request in its scheduler; never 0, never used twice.
using ticket = uint64_t;

// What one choice used. Times are of the scheduler's clock.
struct usage {
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;        // of the prompt: found in the prefix cache, not computed
  kv::miss missed = kv::miss::none;  // why no more tokens were found
  uint64_t generated_tokens = 0;
  uint64_t recomputed_tokens = 0;  // computed again after a preemption or on another runner
  uint64_t drafted_tokens = 0;     // drafted tokens that were computed
  uint64_t accepted_tokens = 0;    // of these
  uint32_t preemptions = 0;
  uint64_t queue_ns = 0;     // waited, from submit on and after each preemption
  uint64_t prompt_ns = 0;    // from the first admission to the first token, less what it waited
  uint64_t generate_ns = 0;  // from the first token to the end, less what it waited
};

struct event {
  enum class kind : uint8_t {
    piece,  // a token and the text that it let out; or the last text alone, then `token` is -1
    end,    // of the choice: it has stop_reason, stop_index and used; no event of it follows
    failed  // as end, but with `why` instead of a stop_reason
  };
  kind what = kind::piece;
  // A `delivered_index` of a choice that is not delivered.
  static constexpr uint32_t not_delivered = UINT32_MAX;
  ticket request = 0;
  uint32_t choice = 0;
  uint32_t delivered_index = 0;  // of the choice among the delivered ones; see request::n_best
  // piece
  int32_t token = -1;
  bool is_end_token = false;          // the token ends the text, and has no text itself
  bool of_prompt = false;             // the token is one of the prompt; choice is 0
  std::string text;                   // whole UTF-8 characters; may be ""
  generate::token_logprobs logprobs;  // where the request asked for them
  // end
  std::vector<float> embedding;  // of a request for one; empty where it was cancelled
  // end, failed
  uint32_t stop_reason = 0;  // BITNET_STOP_*
  uint32_t stop_index = BITNET_NONE;
  // Mean over the choice's tokens, 0 without any. Set if the request has log probabilities or
  // n_best.
  double mean_logprob = 0;
  usage used;
  failure why;
};

// Receives the events of a request, of all its choices in one order.
class sink {
 public:
  sink() = default;
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;
  virtual ~sink() = default;

  // Takes the event and returns true, or returns false and leaves it as it is: the sink is full.
  // The request then takes no part in steps until its reader, having made room, calls ready(); or
  // it fails when that takes longer than the scheduler's sink_patience. An `end` or a `failed` must
  // always be taken, at most one for each choice: the result is ignored. Does not block.
  virtual bool offer(event&& e) = 0;
};

class step_observer;  // schedule/step_observer.hpp

struct request {
  std::vector<int32_t> prompt;  // at least one token
  // Options of every choice. `text` and `grammar` stay empty; the seed of choice i is sampling.seed
  // + i unless `seeds` has one.
  generate::options generation;
  // Set if the request is for an embedding: how rows are pooled. Nothing is generated, and the
  // runner's rows are hidden states. The request has one choice, and max_tokens 0.
  std::optional<generate::pooling> embeds;
  // If set, each prompt token comes as a piece before the first generated one, with its log
  // probability and those of this many most probable tokens.
  std::optional<uint32_t> prompt_logprobs;
  std::vector<uint32_t> seeds;                            // empty, or one for each choice
  std::vector<std::unique_ptr<grammar::guide>> grammars;  // empty, or one for each choice
  uint32_t n = 1;                                         // choices
  // How many choices are delivered: those with the highest mean log probability of their tokens.
  // Delivery begins when all choices have ended, with all events of the best one, then those of the
  // next. If cancel() or the deadline ends the request earlier, n_best choices get that end and no
  // piece. 0: all choices are delivered, as they come.
  uint32_t n_best = 0;
  // Makes a drafter for each choice; empty: nothing is drafted. `drafts` was checked.
  std::function<std::unique_ptr<speculate::drafter>()> make_drafter;
  speculate::options drafts;
  uint64_t client = 0;   // clients get equal shares of the steps
  int32_t priority = 0;  // higher goes first
  std::optional<time_point>
      deadline;  // by the scheduler's clock: then it fails with BITNET_TIMEOUT
  std::shared_ptr<sink> events;
  std::shared_ptr<step_observer> observer;  // nullptr: none
};

// Why a request was not taken.
struct rejection {
  enum class reason : uint8_t {
    invalid,           // no scheduler could run it
    too_long,          // the prompt leaves no room in the context
    too_large,         // it needs more blocks than the pool has
    requests_waiting,  // too many requests wait
    tokens_waiting,    // the prompts that wait have too many tokens together
    closed,            // the scheduler takes no more requests
    no_runner          // the device is lost, and there is no other
  };
  reason why = reason::invalid;
  failure what;  // with the numbers
};
inline constexpr std::size_t n_rejections = 7;

}  // namespace bitnet::schedule
