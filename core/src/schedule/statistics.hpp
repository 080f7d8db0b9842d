#pragma once
// What a scheduler counts. Gauges are read at the begin of the running step or at the end of the
// last tick; counters cover the scheduler's whole life.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/request.hpp"
#include "schedule/sequence_row.hpp"

namespace bitnet::schedule {

// Upper bounds, included, of the histogram steps_by_tokens; its last class is above all of them.
inline constexpr std::array<uint32_t, 13> step_token_bounds = {
    1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

// The reason why the first sequence of the queue does not run.
enum class blocked_by : uint8_t { nothing, sequences, blocks, states, no_runner };

struct statistics {
  // Gauges. A sequence is a choice, or a request whose choices have not begun.
  uint32_t running = 0;
  uint32_t running_paused = 0;     // running ones whose sink is full
  uint32_t waiting_new = 0;        // never ran
  uint32_t waiting_preempted = 0;  // ran, and goes on when there is room
  uint32_t waiting_paused = 0;     // could go on, but the sink is full
  uint64_t waiting_tokens = 0;     // of prompts that never ran
  blocked_by first_waiting = blocked_by::nothing;
  uint32_t blocks = 0, blocks_used = 0, blocks_cached = 0, blocks_reserved = 0;  // of the pool
  uint32_t states = 0, states_used = 0;
  uint32_t clients = 0;  // that were served lately
  uint32_t slots = 0;    // sequences that can run together
  // Running ones in the order of their admission, then at most most_waiting_rows waiting ones.
  std::vector<sequence_row> sequences;

  // Counters.
  std::array<uint64_t, n_rejections> rejected{};  // by rejection::reason
  uint64_t accepted = 0;                          // requests
  std::array<uint64_t, 8> ended{};                // choices, by BITNET_STOP_*
  uint64_t failed = 0;                            // choices
  uint64_t expired = 0;                           // failed choices whose deadline passed
  uint64_t stalled = 0;                           // failed choices whose sink was full for too long
  uint64_t preemptions = 0;
  uint64_t steps = 0, failed_steps = 0, runners_lost = 0, runners_replaced = 0;
  std::array<uint64_t, step_token_bounds.size() + 1> steps_by_tokens{};  // of `steps`
  uint64_t step_tokens = 0;                                              // of all steps together
  uint64_t cancelled_steps = 0;    // ended early, since no request needed them any more
  uint64_t prompt_tokens = 0;      // computed or found
  uint64_t generated_tokens = 0;   // sampled
  uint64_t recomputed_tokens = 0;  // computed again
  uint64_t prefix_queries = 0, prefix_hits = 0;  // tokens of prompts, each prompt once
  std::array<uint64_t, kv::n_misses> misses{};   // prompts by kv::miss
  uint64_t evictions = 0;                        // blocks
  uint64_t copied_blocks = 0;                    // by copy on write, and copies of states
  uint64_t step_ns = 0;                          // of all steps together
  speculate::counts speculated;
  std::array<uint64_t, speculate::most_drafted> accepted_at{};  // by the place in the draft
  uint64_t drafters_failed = 0;
  std::string drafter_failure;  // of the drafter that failed last
};

}  // namespace bitnet::schedule
