#include "commands/gated.hpp"

#include <fmt/format.h>

#include <array>

#include "commands/bench_facts.hpp"
#include "gates/repeats.hpp"

namespace bitnet::host {
namespace {

constexpr std::array gate_options{"min-tps", "max-wall-ms", "max-rss-mb", "check-determinism"};

result<void> emptied(bitnet_session* session) {
  library_error err;
  const bitnet_status status = bitnet_session_truncate(session, 0, &err);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return {};
}

result<token_list> generated_again(bitnet_session* session, const token_list& prompt,
                                   const generation_setup& setup) {
  if (auto done = emptied(session); !done) return std::unexpected(done.error());
  return generated_ids(session, prompt, setup.options());
}

result<token_list> likely_tokens(bitnet_session* session, const token_list& prompt,
                                 uint32_t n_tokens) {
  if (auto done = emptied(session); !done) return std::unexpected(done.error());
  return generated_ids(session, prompt, greedy(n_tokens).options());
}

result<void> take(const invocation& in, gates& limits, const token_list& first,
                  const std::function<result<token_list>()>& again) {
  auto outcome = repeated(first, limits.repeats(), again);
  if (!outcome) return std::unexpected(outcome.error());
  if (!outcome->difference.empty()) in.out.warning(outcome->difference);
  limits.take_repeats(outcome->n_same);
  return {};
}

}  // namespace

result<void> no_gates(const invocation& in, std::string_view why) {
  for (const char* const name : gate_options)
    if (in.set.has(name) && in.set.flagged(name))
      return fail(exit_code::usage, fmt::format("--{} has nothing to judge: {}", name, why));
  return {};
}

result<void> take_run(const invocation& in, gates& limits, bitnet_session* session,
                      const token_list& prompt, const generation_setup& setup,
                      const generated& first) {
  limits.end_of_work();
  const bitnet_generation_result& done = first.result;
  if (done.stop_reason == BITNET_STOP_CANCELLED) return {};
  limits.take_speed(static_cast<double>(done.n_generated) * 1e9 /
                    static_cast<double>(done.generate_ns));
  if (limits.repeats() == 0) return {};
  return take(in, limits, first.ids, [&] { return generated_again(session, prompt, setup); });
}

result<void> take_repeats(const invocation& in, gates& limits, bitnet_session* session,
                          const token_list& prompt, uint32_t n_tokens) {
  if (limits.repeats() == 0) return {};
  const gates::left_out extra(limits);
  const auto again = [&] { return likely_tokens(session, prompt, n_tokens); };
  const auto first = again();
  if (!first) return std::unexpected(first.error());
  return take(in, limits, *first, again);
}

result<int> judged(const invocation& in, const gates& limits) {
  const auto all = limits.results();
  std::string failures;
  for (const gate_result& one : all) {
    if (one.passed)
      in.out.note(gate_line(one));
    else
      failures += (failures.empty() ? "" : "; ") + gate_line(one);
  }
  const int code = gates_code(all);
  if (code != exit_code::ok) return fail(code, failures);
  return code;
}

}  // namespace bitnet::host
