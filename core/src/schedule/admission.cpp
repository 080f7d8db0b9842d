#include "schedule/admission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/wording.hpp"
#include "kv/blocks.hpp"

namespace bitnet::schedule {
namespace {

rejection reject(rejection::reason why, bitnet_status status, std::string message) {
  return {why, {status, std::move(message)}};
}

rejection invalid(std::string message) {
  return reject(rejection::reason::invalid, BITNET_INVALID_ARGUMENT, std::move(message));
}

std::optional<rejection> check_lists(const request& r, const gate& by) {
  if (r.events == nullptr) return invalid("the request has no sink for its events: give one");
  if (r.n == 0 || r.n > by.max_choices)
    return invalid(fmt::format("a request can have 1 to {} choices; this one asks for {}",
                               by.max_choices, r.n));
  if (r.n_best > r.n)
    return invalid(
        fmt::format("the best {} of {} choices are asked for: let at least as many be "
                    "generated as are delivered",
                    r.n_best, r.n));
  if (!r.seeds.empty() && r.seeds.size() != r.n)
    return invalid(
        fmt::format("{} choices need {} seeds or none; there are {}", r.n, r.n, r.seeds.size()));
  if (!r.grammars.empty() && r.grammars.size() != r.n)
    return invalid(
        fmt::format("{} choices need a grammar guide each, or none has one; there are {}", r.n,
                    r.grammars.size()));
  if (!std::ranges::all_of(r.grammars, [](const auto& g) { return g != nullptr; }))
    return invalid("a grammar guide of the request is null: each choice needs its own");
  if (r.prompt_logprobs && (r.embeds || *r.prompt_logprobs > generate::most_logprobs))
    return invalid(fmt::format(
        "log probabilities of a prompt are those of a text to generate, with "
        "at most {} beside each; found {}",
        generate::most_logprobs, r.embeds ? "an embedding" : fmt::to_string(*r.prompt_logprobs)));
  if (r.embeds && (r.n != 1 || r.generation.max_tokens != 0))
    return invalid(
        fmt::format("an embedding is one vector and no text: expected 1 choice and max_tokens 0, "
                    "found {} and {}",
                    r.n, r.generation.max_tokens));
  return std::nullopt;
}

std::optional<rejection> check_prompt(const request& r, const step_limits& most) {
  if (r.prompt.empty())
    return invalid("the prompt has no token; a row of logits needs one: begin with the BOS token");
  const auto known = [&](int32_t id) {
    return id >= 0 && static_cast<uint32_t>(id) < most.n_vocab;
  };
  const auto odd = std::ranges::find_if_not(r.prompt, known);
  if (odd != r.prompt.end())
    return invalid(fmt::format("token {} of the prompt is {}; the vocabulary has 0 to {}",
                               odd - r.prompt.begin(), *odd, most.n_vocab - 1));
  if (r.embeds && r.prompt.size() > most.n_context)
    return reject(rejection::reason::too_long, BITNET_CONTEXT_FULL,
                  fmt::format("{} tokens do not fit the context of {}; use a shorter text or a "
                              "larger {}",
                              r.prompt.size(), most.n_context, say(word::n_context)));
  if (!r.embeds && r.prompt.size() >= most.n_context)
    return reject(rejection::reason::too_long, BITNET_CONTEXT_FULL,
                  fmt::format("the prompt has {} tokens, and the context {}: at least one must be "
                              "left for an answer; give a shorter prompt or a larger context",
                              r.prompt.size(), most.n_context));
  return std::nullopt;
}

}  // namespace

uint64_t most_tokens_of(std::size_t n_prompt, int64_t max_tokens, const step_limits& most) {
  if (max_tokens < 0) return most.n_context;
  const uint64_t room = most.n_context - std::min<uint64_t>(n_prompt, most.n_context);
  const auto behind = static_cast<uint64_t>(std::max<int64_t>(max_tokens, 1)) - 1;
  return n_prompt + std::min(behind, room);
}

uint32_t most_chunk_of(const step_limits& most) {
  if (most.window == 0) return most.max_tokens;
  // A chunk adds at most about as many blocks as the window itself takes.
  return std::min(most.max_tokens, std::max(most.window, kv::block_tokens));
}

uint32_t most_blocks_of(uint64_t tokens, const step_limits& most) {
  const uint32_t whole = kv::blocks_for(tokens);
  if (most.window == 0) return whole;
  // The window and a chunk may each begin in the middle of a block, as may what lies between.
  const uint64_t seen = uint64_t{most.window} + most_chunk_of(most);
  return std::min(whole, kv::blocks_for(most.window_keep) + kv::blocks_for(seen) + 1);
}

std::optional<rejection> find_fault(const request& r, const gate& by) {
  if (auto fault = check_lists(r, by)) return fault;
  if (auto fault = check_prompt(r, by.most)) return fault;
  const uint64_t tokens = most_tokens_of(r.prompt.size(), r.generation.max_tokens, by.most);
  const uint32_t blocks = most_blocks_of(tokens, by.most);
  if (blocks <= by.most.n_blocks) return std::nullopt;
  return reject(
      rejection::reason::too_large, BITNET_OUT_OF_DEVICE_MEMORY,
      fmt::format(
          "{} tokens of the prompt and the answer need {} blocks of {} tokens, and the pool "
          "has {}: ask for fewer tokens, or give the pool more memory",
          tokens, blocks, kv::block_tokens, by.most.n_blocks));
}

std::optional<rejection> find_overload(std::size_t n_prompt, uint64_t n_waiting, uint64_t n_tokens,
                                       const gate& by) {
  if (n_waiting >= by.max_waiting)
    return reject(rejection::reason::requests_waiting, BITNET_BUSY,
                  fmt::format("{} requests wait, and at most {} may: try again later", n_waiting,
                              by.max_waiting));
  // The first waiting request is accepted whatever its size, or it never would be.
  if (n_waiting > 0 && n_tokens + n_prompt > by.max_waiting_tokens)
    return reject(
        rejection::reason::tokens_waiting, BITNET_BUSY,
        fmt::format("prompts of {} tokens wait, and at most {} may: {} more are too many; "
                    "try again later",
                    n_tokens, by.max_waiting_tokens, n_prompt));
  return std::nullopt;
}

waiting_queue::waiting_queue(nanoseconds ageing, const fairness& served)
    : ageing_(ageing), served_(served) {}

void waiting_queue::add(const waiter& w) {
  waiters_.push_back(w);
}

bool waiting_queue::remove(const sequence* who) {
  const auto at = std::ranges::find(waiters_, who, &waiter::who);
  if (at == waiters_.end()) return false;
  *at = waiters_.back();
  waiters_.pop_back();
  return true;
}

void waiting_queue::set_may_run(const sequence* who, bool may) {
  const auto at = std::ranges::find(waiters_, who, &waiter::who);
  if (at != waiters_.end()) at->may_run = may;
}

int64_t waiting_queue::rank_of(const waiter& w, time_point now) const {
  return w.priority + (w.waited + (now - w.since)) / ageing_;
}

const waiter* waiting_queue::first(time_point now) const {
  const waiter* best = nullptr;
  const auto key = [&](const waiter& w) {
    return std::tuple(-rank_of(w, now), served_.order_of(w.client), w.arrival);
  };
  for (const waiter& w : waiters_)
    if (w.may_run && (best == nullptr || key(w) < key(*best))) best = &w;
  return best;
}

}  // namespace bitnet::schedule
