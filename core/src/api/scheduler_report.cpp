#include "api/scheduler_report.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/speculation.hpp"
#include "compute/kv_types.hpp"
#include "kv/blocks.hpp"

namespace bitnet::api {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t n_ends = 7;

const char* word_of(schedule::blocked_by why) {
  constexpr const char* names[] = {"nothing", "sequences", "blocks", "states", "no device"};
  return names[static_cast<std::size_t>(why)];
}

const char* word_of(schedule::activity what) {
  constexpr const char* names[] = {"waiting", "prompt", "decoding", "paused"};
  return names[static_cast<std::size_t>(what)];
}

template <std::size_t N>
ordered_json named(const std::array<uint64_t, N>& counts, const char* const (&names)[N]) {
  ordered_json out = ordered_json::object();
  for (std::size_t i = 0; i < N; ++i) out[names[i]] = counts[i];
  return out;
}

ordered_json kv_json(const serving::async_engine::facts& f, const schedule::statistics& s) {
  const auto dtype = [](uint32_t d) { return compute::find_kv_type(d)->name; };
  return {{"blocks", s.blocks},           {"block_tokens", kv::block_tokens},
          {"block_bytes", f.block_bytes}, {"dtype_k", dtype(f.dtype_k)},
          {"dtype_v", dtype(f.dtype_v)},  {"used", s.blocks_used},
          {"cached", s.blocks_cached},    {"reserved", s.blocks_reserved}};
}

void add_speculation(ordered_json& report, const schedule::statistics& s) {
  if (s.speculated.steps == 0 && s.drafters_failed == 0) return;
  ordered_json out = speculation_json(s.speculated);
  const auto last = std::ranges::find(s.accepted_at, 0U);  // counts never grow with the place
  out["accepted_at"] = std::vector<uint64_t>(s.accepted_at.begin(), last);
  if (s.drafters_failed != 0) {
    out["failed"] = s.drafters_failed;
    out["why"] = s.drafter_failure;
  }
  report["speculation"] = std::move(out);
}

ordered_json sequences_json(const schedule::statistics& s) {
  ordered_json out = ordered_json::array();
  for (const schedule::sequence_row& row : s.sequences) {
    ordered_json one;
    if (row.slot != schedule::no_slot) one["slot"] = row.slot;
    one.update({{"request", row.request},
                {"choice", row.choice},
                {"state", word_of(row.does)},
                {"prompt", row.prompt_tokens},
                {"known", row.known_tokens},
                {"computed", row.computed_tokens},
                {"generated", row.generated_tokens},
                {"remaining", row.remaining_tokens},
                {"speculates", row.speculates}});
    out.push_back(std::move(one));
  }
  return out;
}

ordered_json counts_json(const serving::async_engine::facts& f, const schedule::statistics& s) {
  constexpr const char* rejections[] = {"invalid",          "too_long",       "too_large",
                                        "requests_waiting", "tokens_waiting", "closed",
                                        "no_device"};
  constexpr const char* misses[] = {"none", "nothing_known", "differs", "evicted", "state_missing"};
  constexpr const char* ends[] = {"length",  "eos",       "string", "token",
                                  "context", "cancelled", "grammar"};
  std::array<uint64_t, n_ends> ended{};
  std::copy_n(s.ended.begin() + 1, n_ends, ended.begin());
  ordered_json waiting = {{"new", s.waiting_new},
                          {"preempted", s.waiting_preempted},
                          {"paused", s.waiting_paused},
                          {"tokens", s.waiting_tokens}};
  if (s.first_waiting != schedule::blocked_by::nothing)
    waiting["reason"] = word_of(s.first_waiting);
  ordered_json choices = named(ended, ends);
  choices["failed"] = s.failed;
  choices["expired"] = s.expired;
  choices["stalled"] = s.stalled;
  return {{"backend", f.backend},
          {"device", f.device},
          {"max_sequences", f.limits.max_sequences},
          {"max_tokens", f.limits.max_tokens},
          {"n_context", f.limits.n_context},
          {"kv", kv_json(f, s)},
          {"running", s.running},
          {"paused", s.running_paused},
          {"waiting", std::move(waiting)},
          {"requests", {{"accepted", s.accepted}, {"refused", named(s.rejected, rejections)}}},
          {"choices", std::move(choices)},
          {"tokens",
           {{"prompt", s.prompt_tokens},
            {"generated", s.generated_tokens},
            {"recomputed", s.recomputed_tokens}}},
          {"prefix",
           {{"queried", s.prefix_queries},
            {"found", s.prefix_hits},
            {"misses", named(s.misses, misses)},
            {"evicted_blocks", s.evictions}}},
          {"preemptions", s.preemptions},
          {"steps", s.steps},
          {"step_tokens",
           {{"bounds", schedule::step_token_bounds},
            {"counts", s.steps_by_tokens},
            {"sum", s.step_tokens}}},
          {"failed_steps", s.failed_steps},
          {"cancelled_steps", s.cancelled_steps},
          {"step_ns", s.step_ns},
          {"devices_lost", s.runners_lost},
          {"moves", f.moves}};
}

}  // namespace

ordered_json scheduler_json(const serving::async_engine::facts& f, const schedule::statistics& s) {
  ordered_json out = counts_json(f, s);
  add_speculation(out, s);
  out["slots"] = s.slots;
  out["sequences"] = sequences_json(s);
  return out;
}

}  // namespace bitnet::api
