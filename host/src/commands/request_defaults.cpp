#include "commands/request_defaults.hpp"

#include <fmt/format.h>

#include <charconv>

#include "session/engine.hpp"
#include "session/generation.hpp"

namespace bitnet::host {
namespace {

result<uint32_t> given_parallel(const settings& set) {
  if (!set.given("parallel")) return uint32_t{0};
  const std::string& text = set.text("parallel");
  uint32_t n = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, n);
  if (error == std::errc{} && rest == end && n >= 1 && n <= most_parallel) return n;
  return fail(
      exit_code::usage,
      fmt::format("--parallel expects one number from 1 to {}, found '{}'", most_parallel, text));
}

}  // namespace

result<request_defaults> given_request_defaults(const settings& set) {
  request_defaults out;
  const auto n_parallel = given_parallel(set);
  if (!n_parallel) return std::unexpected(n_parallel.error());
  out.n_parallel = *n_parallel;
  take_parameters(set, out.wish.sampling);
  out.wish.has_seed = set.integer("seed") >= 0;
  if (out.wish.has_seed) out.wish.sampling.seed = static_cast<uint32_t>(set.integer("seed"));
  out.wish.max_tokens = static_cast<int32_t>(set.integer("n-predict"));
  if (out.wish.max_tokens == 0)
    return fail(exit_code::usage, "--n-predict expects at least 1, or -1 for no limit, found 0");
  out.wish.reasoning_budget = static_cast<int32_t>(set.integer("reasoning-budget"));
  const auto speculation = given_speculation(set);
  if (!speculation) return std::unexpected(speculation.error());
  out.wish.speculation = *speculation;
  return out;
}

}  // namespace bitnet::host
